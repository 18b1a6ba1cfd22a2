"""The estimator, for code on an event loop."""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkbound.client.aio_base import AsyncClient, asks, lists, schedules, sweeps, whole_schedules
from linkbound.client.backend import AsyncBackend, Connection
from linkbound.client.estimator_questions import bulk, catalog, estimates, layouts, planning, schedule

if TYPE_CHECKING:
    from pathlib import Path

    import grpc


class AsyncEstimatorClient(AsyncClient):
    """Predicts what the network costs a model that is split over several machines.

    `target` is `host:port`, `unix:/path`, or `local:` for the same answers computed in this process. A host with
    several addresses, or a list of them (`ipv4:10.0.0.1:50051,10.0.0.2:50051`), is asked in turn. `token` is sent as a
    bearer token, `tls` names the files of a connection with TLS; neither matters to `local:`. `timeout_seconds`
    replaces the default deadline of every call: seconds, a timedelta, or None for ever. A `channel` that is given is
    used as it is, with its own retries, and is not closed. Nothing is connected before the first call. What `local:`
    computes waits for nothing, and no deadline interrupts it; models that it imports are kept in the folder `catalog`
    of `data_directory`, None being the user's data directory.

    Raises InvalidArgumentError for a target, token or timeout that cannot be used. Every call raises the classes of
    `linkbound.domain.errors`; links are given as a `Link`, as an effective rate such as `"200g"`, or by a name of
    `linkbound.domain.link_presets` such as `"spark-1f"`.
    """

    # Each method is the function of its name in `linkbound.client.estimator_questions`: keywords, words and request.

    estimate_prefill = asks(estimates.estimate_prefill)
    estimate_decode = asks(estimates.estimate_decode)
    estimate_collective = asks(estimates.estimate_collective)
    estimate_training_step = asks(estimates.estimate_training_step)

    compare_links = asks(planning.compare_links)
    find_slowest_link = asks(planning.find_slowest_link)
    size_cluster = asks(planning.size_cluster)
    check_plan = asks(planning.check_plan)

    compare_layouts = asks(layouts.compare_layouts)
    recommend_layout = asks(layouts.recommend_layout)
    project_tp_sizes = asks(layouts.project_tp_sizes)
    check_memory_fit = asks(layouts.check_memory_fit)

    estimate_schedule = whole_schedules(schedule.estimate_schedule)
    stream_schedule = schedules(schedule.stream_schedule)

    batch_estimate = asks(bulk.batch_estimate)
    stream_sweep = sweeps(bulk.stream_sweep)

    list_models = lists(catalog.list_models)
    get_model = asks(catalog.get_model)
    import_model = asks(catalog.import_model)
    list_hardware = lists(catalog.list_hardware)
    get_hardware = asks(catalog.get_hardware)
    fit_calibration = asks(catalog.fit_calibration)
    list_calibrations = lists(catalog.list_calibrations)
    get_calibration = asks(catalog.get_calibration)
    fit_engine_calibration = asks(catalog.fit_engine_calibration)
    list_engine_calibrations = lists(catalog.list_engine_calibrations)
    get_engine_calibration = asks(catalog.get_engine_calibration)

    @staticmethod
    def _local(data_directory: Path | str | None) -> AsyncBackend:
        from linkbound.client.local.aio import AsyncLocalBackend
        from linkbound.client.local.blocking import local_estimator

        return AsyncLocalBackend(local_estimator(data_directory))

    @staticmethod
    def _remote(connection: Connection, channel: grpc.aio.Channel | None) -> AsyncBackend:
        from linkbound.client.remote.aio import AsyncRemoteBackend
        from linkbound.client.remote.services import ESTIMATOR_SERVICES

        return AsyncRemoteBackend(connection, channel, ESTIMATOR_SERVICES)
