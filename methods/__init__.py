"""The methods: one file each, found by the registry."""
