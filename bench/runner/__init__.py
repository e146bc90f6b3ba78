"""Making runs: the plan of a sweep, its loop, workers, claims, and what is said of them."""
