"""Data files that ship with the package, each with its source, and what reads them."""
