"""The studies: one file each, found by the registry."""
