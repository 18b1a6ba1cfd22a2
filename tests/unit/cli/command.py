"""Runs the command within the test's process."""

import json
from typing import Any

import attrs
import pytest

from linkbound.cli.main import run

SETTINGS = (
    "LINKBOUND_ESTIMATOR",
    "LINKBOUND_INGEST",
    "LINKBOUND_DATA",
    "LINKBOUND_TOKEN",
    "LINKBOUND_TOKEN_FILE",
    "LINKBOUND_DEBUG",
    "LINKBOUND_TLS_CA_FILE",
    "LINKBOUND_TLS_CLIENT_CERTIFICATE_FILE",
    "LINKBOUND_TLS_CLIENT_KEY_FILE",
    "LINKBOUND_TLS_SERVER_NAME",
)
"""The environment variables that the command reads."""

PREFILL = ["estimate", "prefill", "--model", "glm-5.3", "--tp", "8", "--prompt-tokens", "8192", "--link", "200g"]
DECODE = ["estimate", "decode", "--model", "glm-5.3", "--tp", "8", "--link", "200g"]
TP = [
    *("estimate", "tp", "--model", "glm-5.3", "--prompt-tokens", "8192", "--baseline-tp", "8"),
    *("--baseline-ttft", "6.36", "--link", "200g", "--to-link", "100g", "--tp-sizes", "2,4,8,16"),
]
TRAINING = [
    *("estimate", "training", "--nodes", "4", "--gradient-bytes", "15231233024"),
    *("--bandwidth", "1.18GB/s", "--compute-step-seconds", "2.289"),
]

MEMORY = [
    *("estimate", "memory", "--model", "glm-5.3", "--tp", "8", "--hardware", "dgx-spark"),
    *("--context", "262144", "--requests", "1", "--utilization", "0.726", "--kv-cache-dtype", "fp8"),
]


@attrs.frozen
class Outcome:
    """What a command did."""

    exit_code: int
    out: str
    err: str

    @property
    def answer(self) -> dict[str, Any]:
        """The one JSON object on stdout."""
        value = json.loads(self.out)
        assert isinstance(value, dict)
        return value


@attrs.frozen
class Command:
    """The command; what it prints is captured."""

    capture: pytest.CaptureFixture[str]

    def __call__(self, *arguments: str) -> Outcome:
        exit_code = run(arguments)
        printed = self.capture.readouterr()
        return Outcome(exit_code, printed.out, printed.err)
