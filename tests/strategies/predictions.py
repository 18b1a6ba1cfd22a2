"""Estimates, and the predictions that a run keeps."""

from __future__ import annotations

import typing
from typing import Any

import attrs
from hypothesis import strategies as st

from linkbound.domain.estimate import Effect, Estimate
from linkbound.domain.metric import MEASURED_METRIC_OF_DIFFERENCE, Metric, Spread
from linkbound.domain.prediction import Baseline, PredictedValue, Prediction, TransferModel
from tests.strategies.values import (
    IDS,
    INT64,
    Fill,
    Strategy,
    instants,
    maybe,
    members,
    of_plain_type,
    reals,
    texts,
    tuples_of,
    wholes,
)


def estimates(fill: Fill) -> Strategy:
    def build(numbers: list[float], *, has_expected: bool, has_upper: bool, rest: dict[str, Any]) -> Estimate:
        low, middle, high = sorted(numbers)
        return Estimate(lower=low, expected=middle if has_expected else None, upper=high if has_upper else None, **rest)

    flags = st.just(True) if fill is Fill.FULL else st.booleans()
    rest = {
        name: of_plain_type(fill, typing.get_type_hints(Estimate)[name])
        for name in (attribute.name for attribute in attrs.fields(Estimate))
        if name not in {"lower", "expected", "upper", "effects_left_out"}
    }
    rest["effects_left_out"] = tuples_of(fill, members(fill, Effect, "UNSPECIFIED"))
    return st.builds(
        build,
        st.lists(reals(fill, -1e30, 1e30), min_size=3, max_size=3),
        has_expected=flags,
        has_upper=flags,
        rest=st.fixed_dictionaries(rest),
    )


def spreads(fill: Fill) -> Strategy:
    def build(numbers: list[float], *, has_range: bool, round_count: int | None) -> Spread:
        low, middle, high = sorted(numbers)
        return Spread(
            mean=middle,
            minimum=low if has_range else None,
            maximum=high if has_range else None,
            round_count=round_count,
        )

    return st.builds(
        build,
        st.lists(st.floats(1e-300, 1e18), min_size=3, max_size=3),
        has_range=st.just(True) if fill is Fill.FULL else st.booleans(),
        round_count=maybe(fill, st.integers(1, 10**9)),
    )


def transfer_models(fill: Fill) -> Strategy:
    return st.builds(
        TransferModel,
        fixed_seconds=reals(fill, -1e12, 1e12),
        sent_bytes_per_rank=wholes(fill, 0, INT64[1]),
        assumed_bytes_per_second=reals(fill, 0, 1e30),
        assumed_source=texts(fill, 256),
    )


def baselines(fill: Fill) -> Strategy:
    return st.builds(Baseline, value=spreads(fill), run=IDS if fill is Fill.FULL else st.just("") | IDS)


def predicted_values(fill: Fill) -> Strategy:
    differences = list(MEASURED_METRIC_OF_DIFFERENCE)
    others = [m for m in Metric if m not in differences and m.name not in {"UNSPECIFIED", "UNKNOWN"}]
    common = {
        "subject": texts(fill, 64, 1),
        "transfer": maybe(fill, transfer_models(fill)),
        "assumptions": tuples_of(fill, texts(fill, 64, 1)),
    }
    missing = st.lists(texts(fill, 64, 1), min_size=1, max_size=3).map(tuple)
    of_differences = st.builds(
        PredictedValue,
        metric=st.sampled_from(differences),
        estimate=estimates(fill),
        baseline=baselines(fill),
        missing_inputs=missing,
        **common,
    )
    of_others = st.builds(
        PredictedValue,
        metric=st.sampled_from(others),
        estimate=maybe(fill, estimates(fill)),
        missing_inputs=missing,
        **common,
    )
    # Only a difference has a baseline, so only it is ever full.
    return of_differences if fill is Fill.FULL else of_differences | of_others


def predictions(fill: Fill) -> Strategy:
    return st.builds(
        Prediction,
        estimator_version=texts(fill, 64, 1),
        values=st.lists(predicted_values(fill), min_size=1, max_size=3, unique_by=lambda v: (v.metric, v.subject)).map(
            tuple
        ),
        store_time=maybe(fill, instants(fill)),
    )
