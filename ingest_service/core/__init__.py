"""Append protocol, sample checks, digests and the comparison: pure functions and state machines, no I/O."""
