"""A server that follows a script, and an address at which there is none."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import grpc
from attrs import field, frozen

from linkbound.estimator.v1 import catalog_service_pb2
from linkbound.ingest.v1 import ingest_service_pb2, query_service_pb2, run_pb2, run_service_pb2

NOBODY_LISTENS = "127.0.0.1:1"


@frozen
class Script:
    """Ends the first calls of every method with these codes, then answers; `None` in place of a code: never answers."""

    codes: list[grpc.StatusCode | None]
    calls: list[str] = field(factory=list)
    called: threading.Event = field(factory=threading.Event)
    released: threading.Event = field(factory=threading.Event)

    def play(self, method: str, context: grpc.ServicerContext) -> None:
        """Note the call and end it as the script says."""
        self.calls.append(method)
        self.called.set()
        if len(self.calls) > len(self.codes):
            return
        code = self.codes[len(self.calls) - 1]
        if code is None:
            self.released.wait()
        else:
            context.abort(code, "as the script says")


def scripted_methods(script: Script) -> dict[str, dict[str, grpc.RpcMethodHandler[Any, Any]]]:
    """The methods that follow the script, by service."""

    def handler(method: str, request_type: Any, answer: Callable[[Any], Any]) -> grpc.RpcMethodHandler[Any, Any]:
        def behave(request: Any, context: grpc.ServicerContext) -> Any:
            script.play(method, context)
            return answer(request)

        return grpc.unary_unary_rpc_method_handler(
            behave, request_type.FromString, lambda message: message.SerializeToString()
        )

    def stream_handler(method: str, request_type: Any) -> grpc.RpcMethodHandler[Any, Any]:
        def behave(_request: Any, context: grpc.ServicerContext) -> Iterator[Any]:
            script.play(method, context)
            return iter(())

        return grpc.unary_stream_rpc_method_handler(
            behave, request_type.FromString, lambda message: message.SerializeToString()
        )

    def model(request: catalog_service_pb2.GetModelRequest) -> catalog_service_pb2.GetModelResponse:
        return catalog_service_pb2.GetModelResponse(model=catalog_service_pb2.Model(name=request.model))

    def committed(
        request: ingest_service_pb2.AppendTrainingStepsRequest,
    ) -> ingest_service_pb2.AppendTrainingStepsResponse:
        return ingest_service_pb2.AppendTrainingStepsResponse(committed_sequence_number=request.sequence_number)

    def created(request: run_service_pb2.CreateRunRequest) -> run_service_pb2.CreateRunResponse:
        return run_service_pb2.CreateRunResponse(run=run_pb2.Run(name=f"runs/{request.run_id}"))

    def deleted(_request: run_service_pb2.DeleteRunRequest) -> run_service_pb2.DeleteRunResponse:
        return run_service_pb2.DeleteRunResponse()

    return {
        "linkbound.estimator.v1.CatalogService": {
            "GetModel": handler("GetModel", catalog_service_pb2.GetModelRequest, model)
        },
        "linkbound.ingest.v1.IngestService": {
            "AppendTrainingSteps": handler(
                "AppendTrainingSteps", ingest_service_pb2.AppendTrainingStepsRequest, committed
            )
        },
        "linkbound.ingest.v1.QueryService": {
            "QuerySql": stream_handler("QuerySql", query_service_pb2.QuerySqlRequest),
        },
        "linkbound.ingest.v1.RunService": {
            "CreateRun": handler("CreateRun", run_service_pb2.CreateRunRequest, created),
            "DeleteRun": handler("DeleteRun", run_service_pb2.DeleteRunRequest, deleted),
            "WatchRuns": stream_handler("WatchRuns", run_service_pb2.WatchRunsRequest),
        },
    }


@contextmanager
def scripted(*codes: grpc.StatusCode | None, address: str = "127.0.0.1:0") -> Iterator[tuple[str, Script]]:
    """A server that follows a script, and where it is."""
    script = Script(list(codes))
    server = grpc.server(ThreadPoolExecutor(4))
    server.add_generic_rpc_handlers(
        [grpc.method_handlers_generic_handler(*entry) for entry in scripted_methods(script).items()]
    )
    port = server.add_insecure_port(address)
    server.start()
    try:
        yield address.replace(":0", f":{port}"), script
    finally:
        script.released.set()
        server.stop(None).wait()
