"""Rows on a Dask cluster: their sources, the work on them, and the merging of parts."""
