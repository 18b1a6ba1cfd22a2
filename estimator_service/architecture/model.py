"""An architecture as the `Model` that every answer starts from."""

from __future__ import annotations

from estimator_service.architecture.caches import cache_groups
from estimator_service.architecture.facts import Architecture, Experts, Reading
from estimator_service.architecture.parameters import (
    active_parameters,
    mean_weight_bits,
    mtp_parameters,
    parameter_groups,
    total_parameters,
)
from estimator_service.architecture.passes import collectives_of
from linkbound.domain.catalog import Model, WeightFormatSource
from linkbound.domain.rules import checked

DENSE_ACTIVE_PARAMETERS = "active_parameters are all but the input embedding, of which a token reads one row."
EXPERT_ACTIVE_PARAMETERS = (
    "active_parameters are those that a token of text uses: as many of the routed experts as it is sent to; a row of an"
    " embedding counts as nothing."
)
IDENTITY_EXPERTS = (
    "active_parameters are the most that a token uses: {count} experts of each layer hold nothing, and a token that is"
    " sent to them uses fewer of the others."
)
SHARED_TABLE = "Embedding and LM head are one matrix, which is counted once and as the head."


def model_of(reading: Reading, *, model_id: str, display_name: str, sources: tuple[str, ...]) -> Model:
    """The model of an architecture; facts about totals are left out where not all of it is known.

    Raises InvalidArgumentError where a figure is beyond what answers can hold (`docs/formulas.md`, Parameters).
    """
    architecture = reading.architecture
    groups = parameter_groups(architecture) if architecture.is_complete else ()
    experts = _experts(architecture)
    return checked(
        Model(
            model_id=model_id,
            display_name=display_name,
            hidden_size=architecture.hidden_size,
            layer_count=architecture.layer_count,
            attention_head_count=architecture.head_count,
            key_value_head_count=architecture.key_value_head_count,
            vocabulary_size=architecture.vocabulary_size,
            expert_count=0 if experts is None else experts.count,
            active_expert_count=0 if experts is None else experts.active_count,
            activation_value_bytes=architecture.value_bytes,
            collectives=collectives_of(architecture),
            total_parameters=total_parameters(groups) if groups else None,
            mtp_parameters=mtp_parameters(groups) if groups else None,
            active_parameters=active_parameters(groups) if groups else None,
            weight_bits_per_parameter=mean_weight_bits(groups) if groups else None,
            parameter_groups=groups,
            cache_groups=cache_groups(architecture) if architecture.is_complete else (),
            mtp_layer_count=_draft_layer_count(architecture),
            weight_format_source=architecture.weight_format_source if groups else WeightFormatSource.UNSPECIFIED,
            unused_keys=reading.unused_keys,
            undetermined=reading.undetermined,
            assumptions=(*_words(architecture, experts), *reading.assumptions)[:100],
            sources=sources,
        )
    )


def _experts(architecture: Architecture) -> Experts | None:
    """The experts of the layers that have the most of them."""
    blocks = [b for group in architecture.layers for b in group.feed_forwards if isinstance(b, Experts)]
    return max(blocks, key=lambda block: block.count, default=None)


def _draft_layer_count(architecture: Architecture) -> int:
    draft = architecture.draft
    return 0 if draft is None else draft.count


def _words(architecture: Architecture, experts: Experts | None) -> tuple[str, ...]:
    if not architecture.is_complete:
        return ()
    tied = (SHARED_TABLE,) if architecture.tied_embeddings else ()
    if experts is not None:
        identity = experts.identity_count
        most = (IDENTITY_EXPERTS.format(count=identity),) if identity else ()
        return (EXPERT_ACTIVE_PARAMETERS, *most, *tied)
    return tied or (DENSE_ACTIVE_PARAMETERS,)
