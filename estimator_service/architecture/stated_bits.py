"""Weights of which somebody states the mean bits, in place of what the documents of a checkpoint say."""

from __future__ import annotations

from attrs import evolve

from estimator_service.architecture.facts import Reading
from estimator_service.architecture.quantisation import NO_QUANTISATION
from linkbound.domain.catalog import WeightFormatSource

HOW_STORED = "how weights are stored"
_STATED = "Weights take {:g} bits each on average: that was given with the import, in place of what the config says."


def stored_at_bits(reading: Reading, weight_bits_per_parameter: float | None) -> Reading:
    """`reading` of weights at so many bits each; as it is for None (`docs/formulas.md`, Parameters).

    Bytes of parts are then not known by themselves, but by their parameters and the mean.
    """
    if weight_bits_per_parameter is None:
        return reading
    sentences = [sentence for sentence in reading.assumptions if sentence != NO_QUANTISATION]
    return evolve(
        reading,
        architecture=evolve(reading.architecture, weight_format_source=WeightFormatSource.UNSPECIFIED),
        assumptions=(_STATED.format(weight_bits_per_parameter), *sentences),
        undetermined=tuple(open_ for open_ in reading.undetermined if not open_.startswith(HOW_STORED)),
    )
