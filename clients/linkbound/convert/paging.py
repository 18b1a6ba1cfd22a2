"""What a page of the catalogue says of entries that it skips."""

from __future__ import annotations

from linkbound.domain.paging import UnreadableEntry
from linkbound.estimator.v1 import catalog_service_pb2


def unreadable_entry_to_proto(value: UnreadableEntry) -> catalog_service_pb2.UnreadableEntry:
    """An entry of a list that is skipped as a message."""
    return catalog_service_pb2.UnreadableEntry(name=value.name, problem=value.problem)


def unreadable_entry_from_proto(message: catalog_service_pb2.UnreadableEntry) -> UnreadableEntry:
    """An entry of a list that is skipped from its message."""
    return UnreadableEntry(name=message.name, problem=message.problem)
