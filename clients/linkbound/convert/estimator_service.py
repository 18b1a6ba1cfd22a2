"""Converters of `linkbound/estimator/v1/estimator_service.proto`; each question has a module of its own."""

from __future__ import annotations

from linkbound.convert.collective_estimate import (
    collective_estimate_from_proto,
    collective_estimate_to_proto,
    collective_request_from_proto,
    collective_request_to_proto,
)
from linkbound.convert.decode import (
    decode_estimate_from_proto,
    decode_estimate_to_proto,
    decode_request_from_proto,
    decode_request_to_proto,
)
from linkbound.convert.link_comparison import (
    emulated_link_from_proto,
    emulated_link_to_proto,
    emulation_result_from_proto,
    emulation_result_to_proto,
    link_comparison_from_proto,
    link_comparison_request_from_proto,
    link_comparison_request_to_proto,
    link_comparison_to_proto,
)
from linkbound.convert.prefill import (
    pass_transfers_from_proto,
    pass_transfers_to_proto,
    prefill_estimate_from_proto,
    prefill_estimate_to_proto,
    prefill_request_from_proto,
    prefill_request_to_proto,
)
from linkbound.convert.tp_projection import (
    tp_projection_from_proto,
    tp_projection_request_from_proto,
    tp_projection_request_to_proto,
    tp_projection_to_proto,
    tp_size_projection_from_proto,
    tp_size_projection_to_proto,
)
from linkbound.convert.training import (
    training_step_estimate_from_proto,
    training_step_estimate_to_proto,
    training_step_request_from_proto,
    training_step_request_to_proto,
)

__all__ = [
    "collective_estimate_from_proto",
    "collective_estimate_to_proto",
    "collective_request_from_proto",
    "collective_request_to_proto",
    "decode_estimate_from_proto",
    "decode_estimate_to_proto",
    "decode_request_from_proto",
    "decode_request_to_proto",
    "emulated_link_from_proto",
    "emulated_link_to_proto",
    "emulation_result_from_proto",
    "emulation_result_to_proto",
    "link_comparison_from_proto",
    "link_comparison_request_from_proto",
    "link_comparison_request_to_proto",
    "link_comparison_to_proto",
    "pass_transfers_from_proto",
    "pass_transfers_to_proto",
    "prefill_estimate_from_proto",
    "prefill_estimate_to_proto",
    "prefill_request_from_proto",
    "prefill_request_to_proto",
    "tp_projection_from_proto",
    "tp_projection_request_from_proto",
    "tp_projection_request_to_proto",
    "tp_projection_to_proto",
    "tp_size_projection_from_proto",
    "tp_size_projection_to_proto",
    "training_step_estimate_from_proto",
    "training_step_estimate_to_proto",
    "training_step_request_from_proto",
    "training_step_request_to_proto",
]
