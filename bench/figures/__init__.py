"""Figures of studies: panels of curves and rows of points, and their files."""
