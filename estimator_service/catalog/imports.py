"""Models from configs that requests bring: imported under a name, or used for one answer."""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import threading
from collections import OrderedDict
from collections.abc import Iterator

from attrs import frozen

from estimator_service.architecture.json_text import parse_config
from estimator_service.architecture.model import model_of
from estimator_service.architecture.read_architecture import read_architecture
from estimator_service.catalog.model_files import model_file_of, model_in, model_text
from linkbound.domain.catalog import ImportModelRequest, Model
from linkbound.domain.errors import InvalidArgumentError, Violation

LARGEST_INLINE_MODEL_COUNT = 64
"""Models of recent inline configs that are kept: a client that asks many questions sends the same config with each."""
_INLINE = "inline"
_NO_ID = re.compile(r"[^a-z0-9._-]+")
_LONGEST_TYPE = 48


@frozen(kw_only=True)
class ImportedModel:
    """A model, and the text of the file that holds it."""

    model: Model
    text: str


def read_import(request: ImportModelRequest) -> ImportedModel:
    """The model in the config of an import. Raises InvalidArgumentError with every violation."""
    reading = read_architecture(request.config_json, "config_json")
    values = parse_config(request.config_json, "config_json")
    model_id = request.model or _inline_id(values.get("model_type"))
    content = model_file_of(
        reading,
        display_name=request.display_name or model_id,
        sources=(f"config.json that was imported, SHA-256 of its values {_digest_of(values)}",),
    )
    with _of_the_config("config_json"):
        model = model_in(content, model_id)
    return ImportedModel(model=model, text=model_text(content))


class InlineModels:
    """The models of recent inline configs, by the digest of the text. Safe to share between threads."""

    def __init__(self) -> None:
        self._models: OrderedDict[bytes, Model] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, config_json: str, field: str) -> Model:
        """The model in `config_json`. Raises InvalidArgumentError with every violation, paths below `field`."""
        key = hashlib.sha256(config_json.encode("utf-8", errors="surrogatepass")).digest()
        with self._lock:
            known = self._models.get(key)
            if known is not None:
                self._models.move_to_end(key)
                return known
        model = _inline_model(config_json, field)
        with self._lock:
            self._models[key] = model
            if len(self._models) > LARGEST_INLINE_MODEL_COUNT:
                self._models.popitem(last=False)
        return model


def _inline_model(config_json: str, field: str) -> Model:
    reading = read_architecture(config_json, field)
    model_id = _inline_id(parse_config(config_json, field).get("model_type"))
    with _of_the_config(field):
        return model_of(reading, model_id=model_id, display_name=model_id, sources=("config.json in the request",))


@contextlib.contextmanager
def _of_the_config(field: str) -> Iterator[None]:
    """What a model that was read breaks is wrong with the config: its figures are larger than answers can hold."""
    try:
        yield
    except InvalidArgumentError as error:
        described = [Violation(field, f"{v.field} {v.description}") for v in error.field_violations]
        raise InvalidArgumentError(described) from error


def _inline_id(model_type: object) -> str:
    """What a model without a name is called: `inline-qwen3`, by the type that its config gives."""
    folded = _NO_ID.sub("-", model_type.casefold())[:_LONGEST_TYPE].strip("-") if isinstance(model_type, str) else ""
    return f"{_INLINE}-{folded}" if folded else f"{_INLINE}-config"


def _digest_of(values: object) -> str:
    return hashlib.sha256(json.dumps(values, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
