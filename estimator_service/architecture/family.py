"""What the published classes of a `model_type` do that no key of their configs says, and the defaults of their keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import field, frozen

from estimator_service.architecture.mixers import OutputGate, QueryKeyNorm


@frozen(kw_only=True)
class Family:
    """Conventions of the models with one of `model_types`. None: read it from the fields, as of an unknown model.

    `norm_values` vectors are stored for a norm (RMS norm 1, layer norm 2, without parameters 0), `layer_norms` norms
    for a layer. Biases are what holds where no key says. `merged_blocks`: attention and feed-forward end in one sum
    over the ranks in vLLM. `parallel_mixers`: each layer has attention and a state space side by side.
    `doubled_layers`: a layer has two attention and two dense blocks beside its experts. `dense_draft`: draft modules
    have dense blocks. `bare_state_layers`: a state space has a layer to itself. `separate_feed_forwards`: a dense block
    and experts side by side. `shared_apart`: shared experts are summed by themselves. `unused_projections`: layers that
    read the keys and values of earlier ones hold projections all the same. `unread_mixers`: what mixes tokens is not
    read, and why. `window_pattern`: each n-th layer sees all tokens. `position_offset`: learned positions, and rows
    besides. `tower_counts`: a vision tower is part of the model.
    """

    model_types: tuple[str, ...]
    defaults: Mapping[str, Any] = field(factory=dict)
    gated: bool | None = None
    norm_values: int = 1
    layer_norms: int = 2
    projection_bias: bool = False
    output_bias: bool | None = None
    feed_forward_bias: bool = False
    expert_bias: bool = False
    router_bias: bool = False
    query_key_norm: QueryKeyNorm = QueryKeyNorm.NONE
    query_key_norm_bias: bool = False
    query_key_norm_follows_key: bool = True
    output_gate: OutputGate = OutputGate.NONE
    tied: bool = False
    head_bias: bool = False
    sinks: bool = False
    shared_gate: bool = False
    merged_blocks: bool = False
    parallel_mixers: bool = False
    doubled_layers: bool = False
    dense_draft: bool = False
    bare_state_layers: bool = False
    separate_feed_forwards: bool = False
    shared_apart: bool = False
    unused_projections: bool = False
    unread_mixers: str = ""
    window_pattern: int = 0
    position_offset: int | None = None
    embedding_norm: bool = False
    final_norm: bool = True
    embedding_rows: int = 0
    tower_counts: bool = True
    inner_norm: bool | None = None


UNKNOWN = Family(model_types=())
"""An architecture without a rule of its own: fields alone."""
