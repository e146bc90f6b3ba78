"""The data sets: one file a family, found by the registry."""
