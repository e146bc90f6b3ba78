"""Measures the time of rounds, and checks that a GPU gives the numbers of a CPU."""
