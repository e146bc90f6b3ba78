"""Figures of what studies compare: panels of curves, rows, points and matrices, and their files."""
