"""What is written into a field of an answer is there, even where it holds nothing but zeros."""

from attrs import evolve

from linkbound.convert.prefill import prefill_estimate_from_proto, prefill_estimate_to_proto
from linkbound.domain.estimate import Estimate
from linkbound.domain.layout import ParallelLayout
from linkbound.domain.link import Link, RateSource, ResolvedLink
from linkbound.domain.prefill import PrefillEstimate
from linkbound.estimator.v1.estimator_service_pb2 import EstimatePrefillResponse

NOTHING = Estimate(lower=0.0)
LINK = ResolvedLink(link=Link(), effective_bits_per_second=0, rate_source=RateSource.UNSPECIFIED, roce_mtu_bytes=0)
ANSWER = PrefillEstimate(
    model="a",
    tensor_parallel_size=1,
    prompt_tokens=1,
    request_count=1,
    all_reduce_count=0,
    sent_bytes_per_prompt_token=0,
    sent_bytes_per_rank=0,
    counter_bytes_per_rank=0,
    logits_gather_bytes_per_rank=0,
    link=LINK,
    network_seconds=NOTHING,
    ttft_seconds=NOTHING,
    layout=ParallelLayout(tensor_parallel_size=1),
    estimator_version="1",
)


def test_zeros_are_there() -> None:
    answer = evolve(
        ANSWER,
        to_link=LINK,
        inner_link=LINK,
        extra_ttft_seconds=NOTHING,
        extra_ttft_fraction=NOTHING,
        nominal_extra_ttft_seconds=NOTHING,
    )
    read = EstimatePrefillResponse.FromString(prefill_estimate_to_proto(answer).SerializeToString())
    assert read.HasField("to_link")
    assert read.HasField("extra_ttft_seconds")
    assert prefill_estimate_from_proto(read) == answer


def test_what_is_absent_is_not_there() -> None:
    read = EstimatePrefillResponse.FromString(prefill_estimate_to_proto(ANSWER).SerializeToString())
    assert not read.HasField("to_link")
    assert not read.HasField("extra_ttft_seconds")
    assert prefill_estimate_from_proto(read) == ANSWER
