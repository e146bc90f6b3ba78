"""Tuning: every method has the same budget; validation alone decides."""
