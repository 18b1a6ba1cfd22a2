"""What is asked about schedules, and what was measured of engines."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from linkbound.domain.engine import (
    LARGEST_PASS_NUMBER,
    BurstPoint,
    BurstTable,
    EnginePoint,
    EngineRequest,
    EngineTable,
    FitEngineCalibrationRequest,
    SchedulerSettings,
)
from linkbound.domain.layout import ParallelLayout
from linkbound.domain.measured_range import MeasuredRange
from linkbound.domain.schedule import ScheduleRequest
from tests.strategies.collectives import times_given
from tests.strategies.estimator import links
from tests.strategies.memory import parallel_layouts
from tests.strategies.values import IDS, LARGEST_RATE, LARGEST_SECONDS, Fill, Strategy, maybe, reals, texts, tuples_of

TOKENS = st.integers(1, 10**9)
CONFIG = st.just("{}")


def burst_points(_fill: Fill) -> Strategy:
    return st.builds(
        lambda size, rates: BurstPoint(
            message_bytes=size, least_bits_per_second=min(rates), largest_bits_per_second=max(rates)
        ),
        st.integers(1, 10**15),
        st.tuples(st.integers(1, LARGEST_RATE), st.integers(1, LARGEST_RATE)),
    )


def burst_tables(fill: Fill) -> Strategy:
    points = st.lists(burst_points(fill), min_size=1, max_size=3, unique_by=lambda point: point.message_bytes)
    ratios = st.tuples(st.floats(1.0, 2.0), st.floats(1.0, 2.0)).map(sorted)
    return st.builds(
        lambda found, ends: BurstTable(
            points=tuple(sorted(found, key=lambda point: point.message_bytes)),
            least_header_ratio=ends[0],
            largest_header_ratio=ends[-1],
        ),
        points,
        ratios if fill is Fill.FULL else ratios | st.just([None, None]),
    )


def scheduler_settings(fill: Fill) -> Strategy:
    drafts = st.integers(1, 64).flatmap(
        lambda count: st.fixed_dictionaries(
            {
                "draft_token_count": st.just(count),
                "accepted_draft_tokens_per_pass": reals(fill, 0.0, float(count)),
            }
        )
    )
    settings = {
        "engine": st.just("vllm-0.32") if fill is Fill.FULL else st.sampled_from(["", "vllm-0.32", "another"]),
        "max_num_batched_tokens": TOKENS,
        "long_prefill_token_threshold": TOKENS if fill is Fill.FULL else st.integers(0, 10**9),
        "max_num_seqs": maybe(fill, st.integers(1, 10**5)),
        "max_model_len": maybe(fill, st.integers(2, 10**9)),
        "kv_block_count": maybe(fill, st.integers(2, 10**12)),
        "kv_block_tokens": st.integers(1, 65_536),
    }
    return st.builds(
        lambda given, drafted: SchedulerSettings(**given, **drafted),
        st.fixed_dictionaries(settings),
        drafts if fill is Fill.FULL else drafts | st.just({}),
    )


def arrivals(fill: Fill) -> Strategy:
    """How a request arrives: by pass, by time, or with the first pass."""
    by_pass = st.fixed_dictionaries({"arrival_pass": st.integers(0, 10**12)})
    by_time = st.fixed_dictionaries({"arrival_seconds": st.floats(0.0, LARGEST_SECONDS)})
    return by_pass | by_time if fill is Fill.FULL else by_pass | by_time | st.just({})


def engine_requests(fill: Fill) -> Strategy:
    return st.builds(
        lambda prompt, output, arrival: EngineRequest(prompt_tokens=prompt, output_tokens=output, **arrival),
        TOKENS,
        TOKENS,
        arrivals(fill),
    )


def requests_in_order(fill: Fill, *, by_time: bool = True) -> Strategy:
    """Requests that arrive one after the other, all by pass or all by time."""
    ways: list[tuple[str, Strategy]] = [("arrival_pass", st.integers(1, 10**12))]
    ways += [("arrival_seconds", st.floats(1e-6, LARGEST_SECONDS))] if by_time else []

    def of_way(name: str, values: Strategy) -> Strategy:
        entry = st.tuples(TOKENS, TOKENS, values)
        return st.lists(entry, min_size=1, max_size=3).map(
            lambda entries: tuple(
                EngineRequest(prompt_tokens=prompt, output_tokens=output, **{name: arrival})
                for (prompt, output, _), arrival in zip(entries, sorted(e[2] for e in entries), strict=True)
            )
        )

    together = st.lists(st.builds(EngineRequest, prompt_tokens=TOKENS, output_tokens=TOKENS), min_size=1, max_size=3)
    in_turn = st.one_of(*(of_way(name, values) for name, values in ways))
    return in_turn if fill is Fill.FULL else in_turn | together.map(tuple)


def measured_ranges(_fill: Fill) -> Strategy:
    ends = st.floats(1e-9, LARGEST_SECONDS)
    return st.tuples(ends, ends).map(lambda both: MeasuredRange(least=min(both), largest=max(both)))


def engine_points(fill: Fill, label: Strategy | None = None) -> Strategy:
    times = st.floats(1e-6, LARGEST_SECONDS)

    def around(measured: float) -> MeasuredRange:
        return MeasuredRange(least=0.5 * measured, largest=min(2 * measured, LARGEST_SECONDS))

    def of_each(found: list[float], *, has_ranges: bool) -> dict[str, Any]:
        rising = tuple(sorted(found))
        ranges = {"ttft_range_seconds": tuple(map(around, rising))} if has_ranges else {}
        return {"ttft_seconds": rising, **ranges}

    def of_all(both: tuple[float, float], *, has_ranges: bool) -> dict[str, Any]:
        mean, last = sorted(both)
        ranges = {"mean_ttft_range_seconds": around(mean), "last_ttft_range_seconds": around(last)}
        return {"mean_ttft_seconds": mean, "last_ttft_seconds": last, **(ranges if has_ranges else {})}

    def speed(found: float, *, has_range: bool) -> dict[str, Any]:
        ranges = {"output_range_tokens_per_second": around(found)} if has_range else {}
        return {"output_tokens_per_second": found, **ranges}

    has_ranges = st.just(True) if fill is Fill.FULL else st.booleans()

    def figures(count: int) -> Strategy:
        each = st.builds(of_each, st.lists(times, min_size=count, max_size=count), has_ranges=has_ranges)
        return each | st.builds(of_all, st.tuples(times, times), has_ranges=has_ranges)

    speeds = st.builds(speed, st.floats(1e-6, 1e9), has_range=has_ranges)
    return requests_in_order(fill).flatmap(
        lambda requests: st.builds(
            lambda name, measured, generated: EnginePoint(label=name, requests=requests, **measured, **generated),
            texts(fill, 16, 1) if label is None else label,
            figures(len(requests)),
            speeds if fill is Fill.FULL else speeds | st.just({}),
        )
    )


def engine_tables(fill: Fill) -> Strategy:
    def build(layout: ParallelLayout, count: int) -> Strategy:
        inner = links(fill) if layout.ranks_per_node > 1 else maybe(fill, links(fill))
        return st.builds(
            lambda of_model, **rest: EngineTable(layout=layout, **of_model, **rest),
            models_given(),
            link=links(fill),
            inner_link=inner,
            bursts=maybe(fill, burst_tables(fill)),
            scheduler=scheduler_settings(fill),
            points=st.tuples(*(engine_points(fill, st.just(f"P{index}")) for index in range(count))),
        )

    return st.tuples(parallel_layouts(fill), st.integers(1, 3)).flatmap(lambda given: build(*given))


def models_given() -> Strategy:
    """A model by name, or by its config."""
    return st.fixed_dictionaries({"model": IDS}) | st.fixed_dictionaries({"model_config_json": CONFIG})


def fit_engine_calibration_requests(fill: Fill) -> Strategy:
    return st.builds(
        FitEngineCalibrationRequest,
        table=engine_tables(fill),
        engine_calibration=IDS if fill is Fill.FULL else st.just("") | IDS,
        sources=tuples_of(fill, texts(fill, 64, 1)),
    )


def schedule_requests(fill: Fill) -> Strategy:
    """With an engine calibration everything may be given; without one, a model with its links or passes alone."""
    engine = st.fixed_dictionaries({"engine_calibration": IDS}) | st.fixed_dictionaries(
        {"engine_table": engine_tables(fill)}
    )
    timed = st.builds(
        lambda of_model, times, of_engine, **rest: ScheduleRequest(**of_model, **times, **of_engine, **rest),
        models_given(),
        times_given(fill),
        engine,
        requests=requests_in_order(fill),
        **links_and_settings(fill),
    )
    if fill is Fill.FULL:
        return timed
    of_model = st.builds(
        lambda given, times, **rest: ScheduleRequest(**given, **times, **rest),
        models_given(),
        times_given(fill),
        requests=requests_in_order(fill, by_time=False),
        **links_and_settings(Fill.FULL),
    )
    bare = st.builds(
        ScheduleRequest,
        requests=requests_in_order(fill, by_time=False),
        scheduler=maybe(fill, scheduler_settings(fill)),
    )
    return timed | of_model | bare


def links_and_settings(fill: Fill) -> dict[str, Any]:
    return {
        "scheduler": scheduler_settings(fill),
        "arrivals_may_split": st.just(True) if fill is Fill.FULL else st.booleans(),
        "layout": parallel_layouts(fill),
        "link": links(fill),
        "to_link": links(fill),
        "inner_link": links(fill),
        "to_bursts": maybe(fill, burst_tables(fill)),
        "start_index": st.integers(1 if fill is Fill.FULL else 0, LARGEST_PASS_NUMBER),
    }
