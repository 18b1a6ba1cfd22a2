"""The DuckDB store: one writer, many readers, numbered migrations."""
