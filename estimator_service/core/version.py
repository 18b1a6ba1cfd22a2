"""The version of the formulas, which every answer carries and every frozen prediction keeps."""

from __future__ import annotations

ESTIMATOR_VERSION = "1"
"""Raised whenever a formula or a constant changes what is answered, together with the golden figures it changes."""
