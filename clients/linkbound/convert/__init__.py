"""Domain types to protocol buffers and back: one module per proto file, pure functions `x_to_proto` and `x_from_proto`.

A missing sub-message becomes the domain type with zero values, so that its own rules report what is wrong; an enum
number that this version does not know becomes `UNKNOWN`. Names of resources exist in messages only, the domain has ids.
"""
