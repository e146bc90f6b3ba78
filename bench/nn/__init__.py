"""Client models with a leading client dimension, and the networks that servers run."""
