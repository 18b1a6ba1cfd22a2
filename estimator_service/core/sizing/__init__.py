"""Sizing of a cluster: which ports connect nodes, how leaves and spines join, what to buy and what to verify."""
