"""What is asked about collectives, and what was measured of them."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from linkbound.domain.calibration import CollectivePoint, CollectiveTable, CollectiveTiming, FitCalibrationRequest
from linkbound.domain.collective import CollectiveAlgorithm, CollectiveKind
from linkbound.domain.collective_estimate import CollectiveRequest
from tests.strategies.estimator import links
from tests.strategies.values import IDS, Fill, Strategy, maybe, members, texts, tuples_of


def collective_points(_fill: Fill) -> Strategy:
    return st.builds(CollectivePoint, message_bytes=st.integers(1, 10**15), seconds=st.floats(1e-9, 1e6))


def whole_nodes() -> Strategy:
    """Ranks of a group and of a node, at least two in all."""
    return st.builds(
        lambda node_count, ranks_per_node: {
            "rank_count": node_count * ranks_per_node,
            "ranks_per_node": ranks_per_node,
        },
        st.integers(2, 1024),
        st.integers(1, 64),
    )


def collective_tables(fill: Fill) -> Strategy:
    # A fit needs two sizes.
    points = st.lists(collective_points(fill), min_size=2, max_size=4, unique_by=lambda point: point.message_bytes)
    return st.builds(
        lambda group, **rest: CollectiveTable(**group, **rest),
        whole_nodes(),
        kind=members(fill, CollectiveKind, "UNSPECIFIED"),
        points=points.map(tuple),
        timing=members(fill, CollectiveTiming),
    )


def times_given(fill: Fill) -> Strategy:
    """How long collectives take: a name, a table, or nothing."""
    given = st.fixed_dictionaries({"calibration": IDS}) | st.fixed_dictionaries(
        {"collective_table": collective_tables(fill)}
    )
    return given if fill is Fill.FULL else given | st.just({})


def collective_requests(fill: Fill) -> Strategy:
    def build(group: dict[str, int], times: dict[str, Any]) -> Strategy:
        return st.builds(
            CollectiveRequest,
            **{name: st.just(value) for name, value in {**group, **times}.items()},
            kind=st.just(CollectiveKind.ALL_REDUCE),
            # The largest one-shot all-reduce of this many ranks stays within 64 bits.
            message_bytes=maybe(fill, st.integers(1, 10**12)),
            link=links(fill),
            inner_link=links(fill),
            algorithm=members(fill, CollectiveAlgorithm),
        ) | st.builds(
            CollectiveRequest,
            **{name: st.just(value) for name, value in {**group, **times}.items()},
            kind=members(fill, CollectiveKind, "UNSPECIFIED"),
            message_bytes=maybe(fill, st.integers(1, 10**15)),
            link=links(fill),
            inner_link=links(fill),
            algorithm=st.sampled_from([CollectiveAlgorithm.RING, CollectiveAlgorithm.AUTO]),
        )

    return st.tuples(whole_nodes(), times_given(fill)).flatmap(lambda given: build(*given))


def fit_calibration_requests(fill: Fill) -> Strategy:
    return st.builds(
        FitCalibrationRequest,
        table=collective_tables(fill),
        calibration=IDS if fill is Fill.FULL else st.just("") | IDS,
        sources=tuples_of(fill, texts(fill, 64, 1)),
    )
