"""What the measurement of single calls asks: no two questions alike, all messages of the same size."""

from estimator_service.service import default_estimator
from linkbound.convert.prefill import prefill_estimate_to_proto, prefill_request_from_proto
from linkbound.estimator.v1.estimator_service_pb2 import EstimatePrefillRequest
from tests.bench.questions import PREFILL_BYTES, unlike_prefills
from tests.bench.unary import CALL_COUNT, WARM_UP_COUNT


def test_no_two_questions_are_alike_and_all_messages_have_one_size() -> None:
    estimator = default_estimator()

    def answer(question: bytes) -> bytes:
        request = prefill_request_from_proto(EstimatePrefillRequest.FromString(question))
        return prefill_estimate_to_proto(estimator.estimate_prefill(request)).SerializeToString()

    questions = tuple(unlike_prefills(WARM_UP_COUNT + CALL_COUNT))
    assert len(set(questions)) == len(questions)
    assert {len(question) for question in questions} == {len(PREFILL_BYTES)}
    answers = {answer(question) for question in questions[:2000]}
    assert len(answers) == 2000
    assert {len(one) for one in answers} == {len(answer(PREFILL_BYTES))}
