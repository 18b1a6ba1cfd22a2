"""Sweeps: the formulas of the core over arrays. The only part of the estimator that needs NumPy."""
