"""What a rank reads of its memory in one decode pass: weights, and the caches of the requests."""

from __future__ import annotations

from functools import lru_cache

from attrs import evolve, frozen

from estimator_service.core.elementwise import larger, quotient, smaller
from estimator_service.core.memory import ReadBytes, cache_bytes_read, weight_bytes_read
from linkbound.domain.catalog import Hardware, Model, ModelPart, WeightFormatSource
from linkbound.domain.layout import ParallelLayout
from linkbound.domain.link import BITS_PER_BYTE
from linkbound.domain.workload import DecodeWorkload

SAME_MEAN_RATIO = 0.99
"""Rounding of a mean of two digits, such as 4.5 bits."""


def active_weight_bytes(model: Model, layout: ParallelLayout) -> float | None:
    """Weight bytes one rank reads in a pass, at least; None where the model does not say (`docs/formulas.md`, Decode).

    Where the parts of the model are known, what every rank holds whole counts as such. Else W = A q / (8 N Q D) with Q
    stages and D attention groups, as if everything were cut evenly: which weights the groups share is not known. So it
    is where a source states a mean q that the parts exceed, since a floor has to hold for both; with attention groups
    the parts then count in the ratio of both means. Kept for the models and layouts that were asked for last.
    """
    return _active_weight_bytes(model, layout)


@lru_cache(maxsize=256)
def _active_weight_bytes(model: Model, layout: ParallelLayout) -> float | None:
    of_parts, of_mean = compared_weight_bytes(model, layout), _mean_weight_bytes(model, layout)
    if of_parts is None or of_mean is None:
        return of_parts
    is_cut_evenly = stated_mean_is_lower(model) and layout.data_parallel_size == 1
    return smaller(of_parts, of_mean) if is_cut_evenly else of_parts


def compared_weight_bytes(model: Model, layout: ParallelLayout) -> float | None:
    """The same by which layouts are compared: what every rank holds whole counts as such in each of them.

    Where a source states a mean that the parts exceed, each part counts in the ratio of both means: an even cut would
    leave out of a tensor-parallel group what its ranks all read (`docs/formulas.md`, Decode).
    """
    return _compared_weight_bytes(model, layout)


@lru_cache(maxsize=256)
def _compared_weight_bytes(model: Model, layout: ParallelLayout) -> float | None:
    # More rows read more, but one row is what every pass reads at least.
    of_parts = weight_bytes_read(model, layout, 1) if model.parameter_groups else None
    if of_parts is None:
        return _mean_weight_bytes(model, layout)
    return of_parts.lower_bytes * _compared_ratio(model)


def _compared_ratio(model: Model) -> float:
    """What each part counts of what is stored, the same in every layout."""
    return _stated_ratio(model) if stated_mean_is_lower(model) else 1.0


def _stated_ratio(model: Model) -> float:
    """What a pass reads by the stated mean over what it reads by the parts, at most 1.

    An even cut would spread over attention groups what each of them holds, and the parts say what that is.
    """
    one_rank = ParallelLayout(tensor_parallel_size=1)
    of_parts, of_mean = weight_bytes_read(model, one_rank, 1), _mean_weight_bytes(model, one_rank)
    if of_parts is None or of_mean is None:
        return 1.0
    return smaller(quotient(of_mean, of_parts.lower_bytes, if_zero=1.0), 1.0)


def stated_mean_is_lower(model: Model) -> bool:
    """Whether the stored parts of a model are more than its stated mean bits give for all parameters.

    A mean is printed with few digits, so what is within a hundredth is the same (`docs/formulas.md`, Decode).
    """
    groups = [group for group in model.parameter_groups if group.part is not ModelPart.MTP]
    total, bits = model.total_parameters, model.weight_bits_per_parameter
    if total is None or bits is None or any(group.weight_bytes is None for group in groups):
        return False
    stored = sum(group.weight_bytes or 0 for group in groups)
    return total * bits / BITS_PER_BYTE < SAME_MEAN_RATIO * stored


def _mean_weight_bytes(model: Model, layout: ParallelLayout) -> float | None:
    """W = A q / (8 N Q D): which of the weights the D attention groups share is not known here."""
    if model.active_parameters is None or model.weight_bits_per_parameter is None:
        return None
    rank_count = layout.tensor_parallel_size * layout.pipeline_parallel_size * layout.data_parallel_size
    return model.active_parameters * model.weight_bits_per_parameter / BITS_PER_BYTE / rank_count


@frozen(kw_only=True)
class MemoryReads:
    """What one rank reads in a pass, and what the ranks of all stages read one after another; None: not known.

    `is_format_open`: the weights may be stored in fewer bits than they are counted in.
    """

    weight_bytes: float | None
    cache_bytes: float | None
    path_bytes: float
    is_format_open: bool = False

    @property
    def rank_bytes(self) -> float:
        """What is known of one rank's."""
        return (self.weight_bytes or 0.0) + (self.cache_bytes or 0.0)


def memory_reads(workload: DecodeWorkload, model: Model) -> MemoryReads:
    """Weights and cache that a pass reads, at least (`docs/formulas.md`, Decode)."""
    layout = workload.layout
    weights, cache = active_weight_bytes(model, layout), _cache(workload, model, layout)
    path_weights, path_cache = weights, cache
    if layout.pipeline_parallel_size > 1:
        one_stage = evolve(layout, pipeline_parallel_size=1)
        path_weights, path_cache = active_weight_bytes(model, one_stage), _cache(workload, model, one_stage)
    return MemoryReads(
        weight_bytes=weights,
        cache_bytes=cache,
        path_bytes=(path_weights or 0.0) + (path_cache or 0.0),
        is_format_open=weights is not None and model.weight_format_source is WeightFormatSource.DATA_TYPE,
    )


NO_READS = MemoryReads(weight_bytes=None, cache_bytes=None, path_bytes=0.0)


@frozen(kw_only=True)
class ComparedReads:
    """What the ranks of all stages read one after another in a pass, of what is known; the same kind for each layout.

    At least all rows use the experts of one, spread over the ranks, and a request's drafts read its cache once; at most
    each row reads its own, of whole experts all on one rank.
    """

    least_bytes: float
    most_bytes: float


NOTHING_COMPARED = ComparedReads(least_bytes=0.0, most_bytes=0.0)


def compared_reads(workload: DecodeWorkload, model: Model) -> ComparedReads:
    """Both ends of what a pass reads, by which layouts are compared (`docs/formulas.md`, Decode)."""
    one_stage = evolve(workload.layout, pipeline_parallel_size=1)
    least = compared_weight_bytes(model, one_stage) or 0.0
    most = least
    of_rows = weight_bytes_read(model, one_stage, workload.request_count * workload.rows_per_request)
    if of_rows is not None:
        most = larger(least, of_rows.upper_bytes * _compared_ratio(model))
    cache = _cache_ends(workload, model, one_stage)
    if cache is None:
        return ComparedReads(least_bytes=least, most_bytes=most)
    return ComparedReads(least_bytes=least + cache.lower_bytes, most_bytes=most + cache.upper_bytes)


def _cache(workload: DecodeWorkload, model: Model, layout: ParallelLayout) -> float | None:
    read = _cache_ends(workload, model, layout)
    return None if read is None else float(read.lower_bytes)


def _cache_ends(workload: DecodeWorkload, model: Model, layout: ParallelLayout) -> ReadBytes | None:
    if workload.context_tokens is None:
        return None
    return cache_bytes_read(model, layout, workload.context_tokens, workload.request_count, workload.rows_per_request)


def seconds_to_read(read_bytes: float, hardware: Hardware | None) -> float:
    """Time to read from memory at its data-sheet rate; none without hardware (`docs/formulas.md`, Decode)."""
    return 0.0 if hardware is None else read_bytes / hardware.memory_bandwidth_bytes_per_second
