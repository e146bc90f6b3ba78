"""Tuning: the same budget for every method, decided by validation alone."""
