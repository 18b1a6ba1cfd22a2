"""Parallel layouts: what each stage of an instance runs, where its ranks sit, and what that puts on links.

Ranks are numbered tensor-parallel first, then stage by stage, then by attention group, and fill nodes in that order.
The ranks of a node share its link to the other nodes; within a node every rank has a link of its own.
"""
