"""Data set, scenario, number of clients and seed -> the clients: partitioners, splits, cache, statistics."""
