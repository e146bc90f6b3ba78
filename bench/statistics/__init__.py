"""Statistics on numbers alone: no database, no rendering."""
