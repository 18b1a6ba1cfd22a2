"""Logging of a server process: structured lines on stderr, configured once by the entry point."""

from __future__ import annotations

import logging
import sys

import structlog
from structlog.typing import Processor

from serving.settings import LogFormat, LogLevel

RPC_FINISHED = "rpc_finished"
RPC_FAILED = "rpc_failed"
SERVER_STARTED = "server_started"
SERVER_STOPPING = "server_stopping"
SERVER_STOPPED = "server_stopped"
CATALOG_ENTRY_UNREADABLE = "catalog_entry_unreadable"
WORKER_SERVING = "worker_serving"
WORKER_ENDED = "worker_ended"
WORKER_NOT_STARTED = "worker_not_started"


def configure_logging(log_format: LogFormat, log_level: LogLevel) -> None:
    """Send every log line of this process to stderr, those of libraries too, from `log_level` upwards."""
    level = logging.getLevelNamesMapping()[log_level.name]
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    rendering = _rendering(log_format)
    structlog.configure(
        processors=[*shared, *rendering],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *rendering],
        )
    )
    # Libraries speak up for what is wrong; what goes on is ours to say.
    logging.basicConfig(handlers=[handler], level=max(level, logging.WARNING), force=True)


def _rendering(log_format: LogFormat) -> list[Processor]:
    wants_console = log_format is LogFormat.CONSOLE or (log_format is LogFormat.AUTO and sys.stderr.isatty())
    # Tracebacks are shown without local variables: those of a call hold the caller's token.
    if wants_console:
        return [structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)]
    tracebacks = structlog.tracebacks.ExceptionDictTransformer(show_locals=False)
    return [structlog.processors.ExceptionRenderer(tracebacks), structlog.processors.JSONRenderer()]
