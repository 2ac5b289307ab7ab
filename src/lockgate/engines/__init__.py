"""How rows are found and files are written again: Arrow and DuckDB, behind the protocol of `merging`."""
