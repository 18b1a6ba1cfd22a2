"""Converters of `linkbound/types/v1/collective.proto`."""

from __future__ import annotations

from linkbound.convert.values import EnumConverter
from linkbound.domain.collective import CollectiveKind
from linkbound.types.v1 import collective_pb2

_COLLECTIVE_KIND = EnumConverter(CollectiveKind, collective_pb2.CollectiveKind)

collective_kind_to_proto = _COLLECTIVE_KIND.to_proto
collective_kind_from_proto = _COLLECTIVE_KIND.from_proto
