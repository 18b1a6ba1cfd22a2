"""Servicers of the ingest service: convert, ask the application object, convert back."""
