"""How long runs take, and whether a GPU gives the numbers of a CPU."""
