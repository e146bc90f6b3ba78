"""Named grids, one TOML file per grid, and their expansion to runs."""

from bench.grids.expand import Filters, Planned, expand, plan, requested_grid
from bench.grids.grid import Grid, grid_names, load_grid

__all__ = ["Filters", "Grid", "Planned", "expand", "grid_names", "load_grid", "plan", "requested_grid"]
