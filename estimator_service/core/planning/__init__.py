"""Planning: the inverse of a TTFT estimate, and the checklist before a link is chosen."""
