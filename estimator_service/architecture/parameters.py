"""Parameters by part: how many, how many a token uses, how they are stored and cut (`docs/formulas.md`, Parameters)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from attrs import frozen

from estimator_service.architecture.facts import Architecture, WeightFormat
from estimator_service.architecture.storage import formats_around, formats_of_group, weight_bytes
from estimator_service.architecture.weight import Weight
from estimator_service.architecture.weights import layer_weights, weights_around
from linkbound.domain.catalog import ModelPart, ParameterGroup, WeightSplit


@frozen(kw_only=True)
class _Share:
    """What `layer_count` layers hold of one kind of weight."""

    weight: Weight
    weight_format: WeightFormat | None
    layer_count: int
    copies: int
    layers: frozenset[tuple[str, int]]


def parameter_groups(architecture: Architecture) -> tuple[ParameterGroup, ...]:
    """Parameters by part and by how ranks share them, in the order of the parts (`docs/formulas.md`, Parameters).

    A part that some layers hold sliced and some whole has two groups. `weight_bytes` is left out where the source does
    not say how weights are stored.
    """
    groups: dict[tuple[ModelPart, WeightSplit], list[_Share]] = {}
    for share in _shares(architecture):
        if share.weight.parameter_count:
            groups.setdefault((share.weight.part, share.weight.split), []).append(share)
    order = list(ModelPart)
    splits = list(WeightSplit)
    keys = sorted(groups, key=lambda key: (order.index(key[0]), splits.index(key[1])))
    return tuple(_group(part, split, groups[part, split], architecture) for part, split in keys)


def total_parameters(groups: tuple[ParameterGroup, ...]) -> int:
    """All parameters but those of draft modules (`docs/formulas.md`, Parameters)."""
    return sum(group.parameter_count for group in groups if group.part is not ModelPart.MTP)


def mtp_parameters(groups: tuple[ParameterGroup, ...]) -> int:
    """Parameters of draft modules, without the embedding and head that they share (`docs/formulas.md`, Parameters)."""
    return sum(group.parameter_count for group in groups if group.part is ModelPart.MTP)


def active_parameters(groups: tuple[ParameterGroup, ...]) -> int:
    """Parameters that a token of text uses, draft modules apart (`docs/formulas.md`, Parameters)."""
    return sum(group.active_parameter_count for group in groups if group.part is not ModelPart.MTP)


def mean_weight_bits(groups: tuple[ParameterGroup, ...]) -> float | None:
    """Mean bits of a stored weight, scales included; None where not known (`docs/formulas.md`, Parameters)."""
    counted = [group for group in groups if group.part is not ModelPart.MTP]
    stored_bytes = [group.weight_bytes for group in counted if group.weight_bytes is not None]
    parameter_count = sum(group.parameter_count for group in counted)
    if len(stored_bytes) < len(counted) or not parameter_count:
        return None
    return 8 * sum(stored_bytes) / parameter_count


def _shares(architecture: Architecture) -> Iterator[_Share]:
    around = formats_around(architecture)
    for weight in weights_around(architecture):
        yield _Share(
            weight=weight, weight_format=around.get(weight.module), layer_count=1, copies=1, layers=frozenset()
        )
    for layers in layer_weights(architecture):
        formats: Mapping[str, WeightFormat] = formats_of_group(architecture, layers.group)
        names = frozenset(
            ("draft" if layers.is_draft else "", copy * 10**6 + index)
            for copy in range(layers.copies)
            for index in layers.group.layer_indexes
        )
        for weight in layers.weights:
            yield _Share(
                weight=weight,
                weight_format=formats.get(weight.module),
                layer_count=layers.layer_count,
                copies=1,
                layers=names,
            )


def _group(part: ModelPart, split: WeightSplit, shares: list[_Share], architecture: Architecture) -> ParameterGroup:
    value_bytes = architecture.value_bytes
    stored_bytes = sum(s.layer_count * weight_bytes(s.weight, s.weight_format, value_bytes) for s in shares)
    layers: set[tuple[str, int]] = set()
    for share in shares:
        layers |= share.layers
    return ParameterGroup(
        part=part,
        parameter_count=sum(s.layer_count * s.weight.parameter_count for s in shares),
        active_parameter_count=sum(s.layer_count * s.weight.active_parameter_count for s in shares),
        weight_bytes=round(stored_bytes) if architecture.knows_formats else None,
        split=split,
        layer_count=0 if part is ModelPart.MTP else len(layers),
    )
