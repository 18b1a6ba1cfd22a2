"""Models from configs that requests bring: imported under a name, or used for one answer."""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from typing import Any

from attrs import evolve, frozen

from estimator_service.architecture.json_text import parse_config
from estimator_service.architecture.model import model_of
from estimator_service.architecture.read_architecture import read_architecture, read_values
from estimator_service.architecture.stated_bits import stored_at_bits
from estimator_service.catalog.model_files import model_file_of, model_in, model_text
from linkbound.domain.catalog import ImportModelRequest, Model
from linkbound.domain.errors import InvalidArgumentError, Violation
from linkbound.domain.quantisation_file import (
    NAMED_TWICE,
    QUANTISATION_KEYS,
    names_quantisation,
    with_quantisation,
)

LARGEST_INLINE_MODEL_COUNT = 64
"""Models of recent inline configs that are kept: a client that asks many questions sends the same config with each."""
_CONFIG, _QUANTISATION = "config_json", "quantization_json"
_INLINE = "inline"
_NO_ID = re.compile(r"[^a-z0-9._-]+")
_LONGEST_TYPE = 48


@frozen(kw_only=True)
class ImportedModel:
    """A model, and the text of the file that holds it."""

    model: Model
    text: str


def read_import(request: ImportModelRequest) -> ImportedModel:
    """The model in the documents of an import. Raises InvalidArgumentError with every violation."""
    documents = _documents_of(request)
    with _of_the_quantisation(documents):
        reading = read_values(documents.values, _CONFIG)
    if documents.quantisation_unused:
        reading = evolve(reading, assumptions=(NAMED_TWICE, *reading.assumptions))
    model_id = request.model or _inline_id(documents.values.get("model_type"))
    content = model_file_of(
        stored_at_bits(reading, request.weight_bits_per_parameter),
        display_name=request.display_name or model_id,
        sources=tuple(_sources_of(request, documents)),
        weight_bits_per_parameter=request.weight_bits_per_parameter,
    )
    with _of_the_config(_CONFIG):
        model = model_in(content, model_id)
    return ImportedModel(model=model, text=model_text(content))


@frozen(kw_only=True)
class _Documents:
    """The values of a config, with the quantisation that stands beside it; and whether that is there, and used."""

    values: Mapping[str, Any]
    has_quantisation_file: bool = False
    quantisation_unused: bool = False


def _documents_of(request: ImportModelRequest) -> _Documents:
    values = parse_config(request.config_json, _CONFIG)
    if not request.quantization_json:
        return _Documents(values=values)
    beside = parse_config(request.quantization_json, _QUANTISATION)
    merged = with_quantisation(values, beside, _QUANTISATION)
    is_unused = names_quantisation(values)
    return _Documents(values=merged, has_quantisation_file=not is_unused, quantisation_unused=is_unused)


def _sources_of(request: ImportModelRequest, documents: _Documents) -> Iterator[str]:
    beside = " with the quantisation file beside it" if documents.has_quantisation_file else ""
    yield f"config.json that was imported{beside}, SHA-256 of its values {_digest_of(documents.values)}"
    if request.weight_bits_per_parameter is not None:
        yield "bits of a weight: given with the import"


@contextlib.contextmanager
def _of_the_quantisation(documents: _Documents) -> Iterator[None]:
    """What is wrong in the quantisation that stands beside a config is told of that document."""
    try:
        yield
    except InvalidArgumentError as error:
        merged = f"{_CONFIG}.{QUANTISATION_KEYS[0]}"
        if not documents.has_quantisation_file:
            raise
        described = [
            evolve(v, field=v.field.replace(merged, _QUANTISATION, 1)) if v.field.startswith(merged) else v
            for v in error.field_violations
        ]
        raise InvalidArgumentError(described) from error


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
