"""From an experiment's cells to figures, a module a question."""
