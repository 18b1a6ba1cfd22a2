"""One prompt workload over several tensor-parallel sizes: the question and its answer."""

from __future__ import annotations

from collections.abc import Iterable

from attrs import field, frozen

from linkbound.domain.errors import Violation
from linkbound.domain.estimate import Estimate
from linkbound.domain.link import Link
from linkbound.domain.memory import MemoryNeed
from linkbound.domain.names import OPTIONAL_CATALOG_NAME
from linkbound.domain.rules import Checked, CrossChecked, instance, sequence
from linkbound.domain.workload import POSITIVE_SECONDS, TENSOR_PARALLEL_SIZE, PrefillWorkload

LARGEST_SIZE_COUNT = 16


@frozen(kw_only=True)
class TpProjectionRequest(Checked, CrossChecked):
    """How does the loss from `link` to `to_link` change with the tensor-parallel size?

    `baseline_ttft_seconds` is measured over `link` at the size of the workload. `hardware` is an id of the catalogue;
    empty: memory is not checked.
    """

    workload: PrefillWorkload = field(metadata=instance(PrefillWorkload))
    baseline_ttft_seconds: float = field(metadata=POSITIVE_SECONDS)
    link: Link = field(metadata=instance(Link))
    to_link: Link = field(metadata=instance(Link))
    tensor_parallel_sizes: tuple[int, ...] = field(metadata=sequence(1, LARGEST_SIZE_COUNT, TENSOR_PARALLEL_SIZE))
    hardware: str = field(default="", metadata=OPTIONAL_CATALOG_NAME)

    def cross_violations(self) -> Iterable[Violation]:
        """No size is asked twice."""
        sizes = self.tensor_parallel_sizes
        repeated = sorted({size for size in sizes if sizes.count(size) > 1})
        if repeated:
            yield Violation("tensor_parallel_sizes", f"{', '.join(map(str, repeated))}: asked more than once")


@frozen(kw_only=True)
class TpSizeProjection:
    """One tensor-parallel size; ratios are to the size of the baseline, no bytes ratio where that sends nothing.

    `feasible` None: it can be cut so, and what it needs of the memory is not known; `reasons` say why it is not, or not
    known to be. `memory` None: no hardware was named, or what it needs is not known.
    """

    tensor_parallel_size: int
    sent_bytes_per_rank: int
    sent_bytes_ratio: float | None = None
    compute_ratio: float
    ttft_seconds: Estimate
    extra_ttft_seconds: Estimate
    extra_ttft_fraction: Estimate
    feasible: bool | None
    reasons: tuple[str, ...] = ()
    memory: MemoryNeed | None = None


@frozen(kw_only=True)
class TpProjection:
    """The projections, in the order asked."""

    projections: tuple[TpSizeProjection, ...]
    assumptions: tuple[str, ...] = ()
    estimator_version: str
