"""Rows on a Dask cluster: where they come from, what workers do with them, and how parts merge."""
