"""The estimator, for code that blocks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from linkbound.client import estimator_requests, names, operations
from linkbound.client.backend import Backend, ChannelOptions, Connection
from linkbound.client.base import Client
from linkbound.client.estimator_requests import LinkOrRate
from linkbound.client.options import UNSET, Timeout, TlsFiles
from linkbound.client.target import LOCAL, TargetKind, parse_target
from linkbound.domain.catalog import Hardware, HardwareRequest, Model, ModelRequest
from linkbound.domain.collective import CollectiveEstimate, CollectiveKind
from linkbound.domain.decode import DecodeEstimate
from linkbound.domain.link_comparison import EmulatedLink, LinkComparison
from linkbound.domain.prefill import PrefillEstimate
from linkbound.domain.tp_projection import TpProjection
from linkbound.domain.training import TrainingStepEstimate
from linkbound.domain.workload import DecodeWorkload, PrefillWorkload

if TYPE_CHECKING:
    import grpc


class EstimatorClient(Client):
    """Predicts what the network costs a model that is split over several machines.

    `target` is `host:port`, `unix:/path`, or `local:` for the same answers computed in this process. `token` is sent
    as a bearer token, `tls` names the files of a connection with TLS; neither matters to `local:`. `timeout_seconds`
    replaces the default deadline of every call: seconds, a timedelta, or None for ever. A `channel` that is given is
    used as it is, with its own retries, and is not closed. Nothing is connected before the first call. What `local:`
    computes waits for nothing, and no deadline interrupts it.

    Raises InvalidArgumentError for a target, token or timeout that cannot be used. Every call raises the classes of
    `linkbound.domain.errors`; links are given as a `Link` or as an effective rate such as `"200g"`.
    """

    def __init__(
        self,
        target: str = LOCAL,
        *,
        token: str | None = None,
        tls: TlsFiles | None = None,
        timeout_seconds: Timeout = UNSET,
        channel_options: ChannelOptions = (),
        channel: grpc.Channel | None = None,
    ) -> None:
        connection = Connection(target=parse_target(target), token=token, tls=tls, channel_options=channel_options)
        super().__init__(_backend(connection, channel), timeout_seconds)

    def estimate_prefill(  # noqa: PLR0913 - the keywords are the request
        self,
        *,
        model: str,
        tensor_parallel_size: int,
        prompt_tokens: int,
        link: LinkOrRate,
        request_count: int = 1,
        max_num_batched_tokens: int | None = None,
        to_link: LinkOrRate | None = None,
        baseline_ttft_seconds: float | None = None,
        timeout_seconds: Timeout = UNSET,
    ) -> PrefillEstimate:
        """Bytes on the wire and time bounds of `request_count` prompts of `prompt_tokens` each that arrive together.

        With `to_link`, what changes when the group moves from `link` to it; with `baseline_ttft_seconds`, measured
        over `link` and of the last request, the same as a fraction. Formulas: `docs/formulas.md`, prefill.

        Raises InvalidArgumentError, NotFoundError for an unknown model, and the errors of the connection.
        """
        workload = PrefillWorkload(
            model=names.model_id(model),
            tensor_parallel_size=tensor_parallel_size,
            prompt_tokens=prompt_tokens,
            request_count=request_count,
            max_num_batched_tokens=max_num_batched_tokens,
        )
        request = estimator_requests.prefill_request(
            workload, link=link, to_link=to_link, baseline_ttft_seconds=baseline_ttft_seconds
        )
        return self._call(operations.ESTIMATE_PREFILL, request, timeout_seconds)

    def estimate_decode(  # noqa: PLR0913 - the keywords are the request
        self,
        *,
        model: str,
        tensor_parallel_size: int,
        link: LinkOrRate,
        request_count: int = 1,
        draft_token_count: int = 0,
        acceptance_length_tokens: float | None = None,
        hardware: str = "",
        to_link: LinkOrRate | None = None,
        timeout_seconds: Timeout = UNSET,
    ) -> DecodeEstimate:
        """Bytes, pass time and traffic while `request_count` requests generate at the same time.

        `acceptance_length_tokens` is what a pass yields for each request on average; with draft tokens it is never
        assumed. `hardware`, an id of the catalogue, bounds a pass by its memory rate. Formulas: `docs/formulas.md`,
        decode.

        Raises InvalidArgumentError, NotFoundError for an unknown model or hardware, and the errors of the connection.
        """
        workload = DecodeWorkload(
            model=names.model_id(model),
            tensor_parallel_size=tensor_parallel_size,
            request_count=request_count,
            draft_token_count=draft_token_count,
            acceptance_length_tokens=acceptance_length_tokens,
            hardware=names.hardware_id(hardware),
        )
        request = estimator_requests.decode_request(workload, link=link, to_link=to_link)
        return self._call(operations.ESTIMATE_DECODE, request, timeout_seconds)

    def estimate_collective(
        self,
        *,
        kind: CollectiveKind,
        rank_count: int,
        link: LinkOrRate,
        message_bytes: int | None = None,
        timeout_seconds: Timeout = UNSET,
    ) -> CollectiveEstimate:
        """Bytes of one rank, time and bandwidth of one collective of `message_bytes` among `rank_count` ranks.

        Without a size only rates are answered. Formulas: `docs/formulas.md`, collectives.

        Raises InvalidArgumentError and the errors of the connection.
        """
        request = estimator_requests.collective_request(
            kind=kind, rank_count=rank_count, link=link, message_bytes=message_bytes
        )
        return self._call(operations.ESTIMATE_COLLECTIVE, request, timeout_seconds)

    def estimate_training_step(
        self,
        *,
        gradient_bytes: int,
        rank_count: int,
        link: LinkOrRate,
        compute_step_seconds: float,
        timeout_seconds: Timeout = UNSET,
    ) -> TrainingStepEstimate:
        """Gradient exchange and step time of data-parallel training on `rank_count` nodes.

        `compute_step_seconds` is the step time of one node alone at the same batch per node. Formulas:
        `docs/formulas.md`, training.

        Raises InvalidArgumentError and the errors of the connection.
        """
        request = estimator_requests.training_step_request(
            gradient_bytes=gradient_bytes, rank_count=rank_count, link=link, compute_step_seconds=compute_step_seconds
        )
        return self._call(operations.ESTIMATE_TRAINING_STEP, request, timeout_seconds)

    def compare_links(
        self,
        *,
        workload: PrefillWorkload | DecodeWorkload,
        old_link: LinkOrRate,
        new_link: LinkOrRate,
        baseline_seconds: float | None = None,
        emulation: EmulatedLink | None = None,
        timeout_seconds: Timeout = UNSET,
    ) -> LinkComparison:
        """What `workload` loses or gains if `old_link` becomes `new_link`.

        `baseline_seconds` is measured over `old_link`: the TTFT of a prefill, the pass time of a decode. `emulation`
        is a TTFT measured over a link that stands in for the new one. Formulas: `docs/formulas.md`, link comparison.

        Raises InvalidArgumentError, NotFoundError for an unknown model or hardware, and the errors of the connection.
        """
        request = estimator_requests.link_comparison_request(
            workload, old_link=old_link, new_link=new_link, baseline_seconds=baseline_seconds, emulation=emulation
        )
        return self._call(operations.COMPARE_LINKS, request, timeout_seconds)

    def project_tp_sizes(
        self,
        *,
        workload: PrefillWorkload,
        baseline_ttft_seconds: float,
        link: LinkOrRate,
        to_link: LinkOrRate,
        tensor_parallel_sizes: Sequence[int],
        timeout_seconds: Timeout = UNSET,
    ) -> TpProjection:
        """How the loss from `link` to `to_link` changes with the tensor-parallel size.

        `baseline_ttft_seconds` is measured over `link` at the size of `workload`. Formulas: `docs/formulas.md`,
        projection over tensor-parallel sizes.

        Raises InvalidArgumentError, NotFoundError for an unknown model, and the errors of the connection.
        """
        request = estimator_requests.tp_projection_request(
            workload,
            baseline_ttft_seconds=baseline_ttft_seconds,
            link=link,
            to_link=to_link,
            tensor_parallel_sizes=tensor_parallel_sizes,
        )
        return self._call(operations.PROJECT_TP_SIZES, request, timeout_seconds)

    def list_models(self, *, timeout_seconds: Timeout = UNSET) -> Iterator[Model]:
        """Every model of the catalogue in the order of the ids; the timeout is that of one page.

        Raises the errors of the connection, while iterating.
        """
        return self._entries(operations.LIST_MODELS, timeout_seconds)

    def get_model(self, model: str, *, timeout_seconds: Timeout = UNSET) -> Model:
        """The model with the id `model`.

        Raises InvalidArgumentError, NotFoundError with near names, and the errors of the connection.
        """
        return self._call(operations.GET_MODEL, ModelRequest(model=names.model_id(model)).model, timeout_seconds)

    def list_hardware(self, *, timeout_seconds: Timeout = UNSET) -> Iterator[Hardware]:
        """All hardware of the catalogue in the order of the ids; the timeout is that of one page.

        Raises the errors of the connection, while iterating.
        """
        return self._entries(operations.LIST_HARDWARE, timeout_seconds)

    def get_hardware(self, hardware: str, *, timeout_seconds: Timeout = UNSET) -> Hardware:
        """The hardware with the id `hardware`.

        Raises InvalidArgumentError, NotFoundError with near names, and the errors of the connection.
        """
        return self._call(
            operations.GET_HARDWARE, HardwareRequest(hardware=names.hardware_id(hardware)).hardware, timeout_seconds
        )


def _backend(connection: Connection, channel: grpc.Channel | None) -> Backend:
    if channel is None and connection.target.kind is TargetKind.LOCAL:
        from linkbound.client.local.blocking import local_estimator

        return local_estimator()
    from linkbound.client.remote.blocking import RemoteBackend
    from linkbound.client.remote.services import ESTIMATOR_SERVICES

    return RemoteBackend(connection, channel, ESTIMATOR_SERVICES)
