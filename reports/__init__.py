"""The studies: a package each, found by the registry."""
