"""The ingest service: measurements into DuckDB, and predictions held against them."""
