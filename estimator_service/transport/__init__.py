"""Servicers of the estimator: convert, ask the application object, convert back."""
