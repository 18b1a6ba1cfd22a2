"""The physics: pure functions over the domain types. No transport, storage, clock or randomness.

Every formula stands in `docs/formulas.md` with its symbols, units and source. Rates are payload rates of one direction
of one rank; bytes are *message* bytes (payload of a collective), *sent* bytes (what one rank sends for it) or *counter*
bytes (sent bytes with packet headers), and never one for another.
"""
