"""The rules that every method must keep, for the tests and for ``bench check-method``."""
