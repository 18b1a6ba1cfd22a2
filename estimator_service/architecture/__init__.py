"""From a published config to the facts that count: what a model is made of, read by fields, in types of our own.

`json_text` reads the text within bounds, `fields` keeps which keys were used, the `read_*` modules turn keys into the
`Architecture` of `facts`, and `weights`, `storage`, `caches` and `passes` derive parameters, bytes, caches and
collectives from it. `model` joins them. Nothing here reads a file, a clock or the network. Formulas, units and sources:
`docs/formulas.md`, sections Parameters, Caches and Collectives of a pass.
"""
