"""How often each fault is made: a few times here, as often as the issue asks in `make faults`."""

from __future__ import annotations

import os

KILLS = int(os.environ.get("FAULT_KILLS", "3"))
"""Kills of the service under load."""

REPEATS = int(os.environ.get("FAULT_REPEATS", "3"))
"""Every other fault that takes moments."""

IS_FULL = REPEATS > 10
"""Whether there is time for what takes minutes, such as the default patience of both sides with a dead connection."""
