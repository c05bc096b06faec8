"""Long work in pieces, by processes or the workers of a Dask cluster."""
