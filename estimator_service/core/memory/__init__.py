"""Memory of one rank: what it holds, what a decode pass reads of it, and whether it is there.

Bytes are whole and of the fullest rank. None: the model does not say enough.
"""

from estimator_service.core.memory.cache import cache_bytes_of_rank, cache_bytes_read
from estimator_service.core.memory.feasibility import MEMORY_NOT_KNOWN, Feasibility, feasibility_of
from estimator_service.core.memory.fit import check_memory_fit
from estimator_service.core.memory.need import (
    MemorySettings,
    countable_need,
    memory_need,
    memory_reasons,
    memory_violations,
)
from estimator_service.core.memory.overheads import (
    activation_bytes,
    communication_buffer_bytes,
    runtime_bytes,
    usable_bytes,
)
from estimator_service.core.memory.reads import ReadBytes, weight_bytes_read
from estimator_service.core.memory.weights import RankWeights, stored_at, weights_of_rank

__all__ = [
    "MEMORY_NOT_KNOWN",
    "Feasibility",
    "MemorySettings",
    "RankWeights",
    "ReadBytes",
    "activation_bytes",
    "cache_bytes_of_rank",
    "cache_bytes_read",
    "check_memory_fit",
    "communication_buffer_bytes",
    "countable_need",
    "feasibility_of",
    "memory_need",
    "memory_reasons",
    "memory_violations",
    "runtime_bytes",
    "stored_at",
    "usable_bytes",
    "weight_bytes_read",
    "weights_of_rank",
]
