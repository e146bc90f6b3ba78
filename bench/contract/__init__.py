"""What every method must keep, whoever wrote it: for the tests and for ``bench check-method``."""
