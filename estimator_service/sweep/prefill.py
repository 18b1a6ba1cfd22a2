"""Prompts at every point of a sweep: what `estimate_prefill` answers for each, a stretch of points at a time."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from typing import Any

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from estimator_service.core import assumptions
from estimator_service.core.elementwise import Array
from estimator_service.core.feasibility import infeasible_reasons, size_violations
from estimator_service.core.intervals import ends_of_change
from estimator_service.core.inventory import sent_bytes_per_token
from estimator_service.core.links import extra_send_seconds, resolve, send_seconds
from estimator_service.core.prefill import sent_bytes_of_tokens
from estimator_service.core.version import ESTIMATOR_VERSION
from estimator_service.sweep.axes import AxisColumn, Integers, axis_columns
from linkbound.domain.catalog import Model
from linkbound.domain.errors import InvalidArgumentError
from linkbound.domain.link import Link
from linkbound.domain.sweep import SweepColumns, SweepRequest, SweepVariable

_NOTHING: array[Any] = array("d")


def sweep_prefill(request: SweepRequest, model: Model) -> Iterator[SweepColumns]:
    """The points of `request` from its `start_index` on, in stretches of at most `points_per_response`.

    Each stretch is computed when it is asked for. Raises InvalidArgumentError at once where no axis varies the
    tensor-parallel size and the model cannot be cut by it.
    """
    sweep = _PrefillSweep.of(request, model)
    total, length = request.total_point_count, request.points_per_response
    starts = range(request.start_index, total, length)
    return (sweep.columns(start, min(start + length, total)) for start in starts)


@frozen(eq=False)
class _TpSizes:
    """What depends on the tensor-parallel size alone, by the position of its axis; one entry without an axis."""

    sent_bytes_per_token: NDArray[np.float64]
    is_infeasible: NDArray[np.bool_]


@frozen(eq=False)
class _PrefillSweep:
    """One sweep. What no axis varies is an array of one entry, which every point shares."""

    request: SweepRequest
    axes: dict[SweepVariable, AxisColumn]
    sizes: _TpSizes
    assumptions: tuple[str, ...]

    @classmethod
    def of(cls, request: SweepRequest, model: Model) -> _PrefillSweep:
        """The sweep of `request` with everything that its points have in common."""
        return cls(
            request=request,
            axes={column.axis.variable: column for column in axis_columns(request.axes)},
            sizes=_tp_sizes(request, model),
            assumptions=_assumptions(request),
        )

    def columns(self, start_index: int, end_index: int) -> SweepColumns:
        """The points from `start_index` to before `end_index`."""
        indices = np.arange(start_index, end_index, dtype=np.int64)
        size_axis = self.axes.get(SweepVariable.TENSOR_PARALLEL_SIZE)
        sizes = np.zeros(1, dtype=np.int64) if size_axis is None else size_axis.positions(indices)
        tokens = self._values(SweepVariable.PROMPT_TOKENS, self.request.workload.prompt_tokens, indices)
        requests = self._values(SweepVariable.REQUEST_COUNT, self.request.workload.request_count, indices)
        rates = self._rates(SweepVariable.LINK_BITS_PER_SECOND, self.request.link, indices)

        sent = sent_bytes_of_tokens(tokens * requests, self.sizes.sent_bytes_per_token[sizes])
        lower, upper = self._extra_ttft(sent, rates, indices)
        return SweepColumns(
            start_index=start_index,
            total_point_count=self.request.total_point_count,
            sent_bytes_per_rank=_integers(np.rint(_expanded(sent, indices))),
            network_seconds=_reals(_expanded(send_seconds(sent, rates), indices)),
            extra_ttft_lower_seconds=lower,
            extra_ttft_upper_seconds=upper,
            infeasible_indices=_integers(indices[_expanded(self.sizes.is_infeasible[sizes], indices)]),
            estimator_version=ESTIMATOR_VERSION,
            assumptions=self.assumptions if start_index == self.request.start_index else (),
        )

    def _extra_ttft(self, sent: Array, rates: Array, indices: Integers) -> tuple[array[Any], array[Any]]:
        """Both ends of the extra TTFT; nothing without a link to change to."""
        if self.request.to_link is None:
            return _NOTHING, _NOTHING
        to_rates = self._rates(SweepVariable.TO_LINK_BITS_PER_SECOND, self.request.to_link, indices)
        lower, upper = ends_of_change(extra_send_seconds(sent, rates, to_rates))
        return _reals(_expanded(lower, indices)), _reals(_expanded(upper, indices))

    def _values(self, variable: SweepVariable, otherwise: int, indices: Integers) -> Integers:
        axis = self.axes.get(variable)
        return np.full(1, otherwise, dtype=np.int64) if axis is None else axis.values(indices)

    def _rates(self, variable: SweepVariable, link: Link, indices: Integers) -> Array:
        rates: Array = self._values(variable, resolve(link).effective_bits_per_second, indices)
        return rates


def _tp_sizes(request: SweepRequest, model: Model) -> _TpSizes:
    axis = request.axis_of(SweepVariable.TENSOR_PARALLEL_SIZE)
    if axis is None:
        size = request.workload.tensor_parallel_size
        violations = tuple(size_violations(model, size, "workload.tensor_parallel_size"))
        if violations:
            raise InvalidArgumentError(violations)
        sizes: tuple[int, ...] = (size,)
    else:
        sizes = tuple(axis.value_at(position) for position in range(axis.value_count))
    per_token = {size: sent_bytes_per_token(model, size) for size in set(sizes)}
    infeasible = {size: bool(infeasible_reasons(model, size)) for size in per_token}
    return _TpSizes(
        sent_bytes_per_token=np.array([per_token[size] for size in sizes], dtype=np.float64),
        is_infeasible=np.array([infeasible[size] for size in sizes], dtype=np.bool_),
    )


def _assumptions(request: SweepRequest) -> tuple[str, ...]:
    links = [_swept(request, SweepVariable.LINK_BITS_PER_SECOND, request.link)]
    if request.to_link is not None:
        links.append(_swept(request, SweepVariable.TO_LINK_BITS_PER_SECOND, request.to_link))
    return (*assumptions.of_links(*map(resolve, links)), assumptions.NO_CACHED_PREFIX)


def _swept(request: SweepRequest, variable: SweepVariable, link: Link) -> Link:
    """The link as its axis leaves it: a rate that is effective as it is."""
    axis = request.axis_of(variable)
    return link if axis is None else Link(line_rate_bits_per_second=axis.value_at(0))


def _expanded(values: Any, indices: Integers) -> NDArray[Any]:
    """One value for each of `indices`, from as many or from one."""
    return np.broadcast_to(np.asarray(values), indices.shape)


def _integers(values: NDArray[Any]) -> array[Any]:
    return array("q", values.astype(np.int64).tobytes())


def _reals(values: NDArray[Any]) -> array[Any]:
    return array("d", values.tobytes())
