"""The number type that a config says a model runs in, and what of it is not known."""

from __future__ import annotations

from attrs import frozen

from estimator_service.architecture.fields import Fields
from linkbound.domain.rules import shown

_KEYS = ("dtype", "torch_dtype")
_BYTES = {
    "bfloat16": 2,
    "float16": 2,
    "half": 2,
    "bf16": 2,
    "fp16": 2,
    "float32": 4,
    "float": 4,
    "fp32": 4,
    "float64": 8,
    "double": 8,
}
_USUAL_BYTES = 2
_NOT_NAMED = "Activations, and weights that no quantisation names, take 2 bytes (BF16)."
_FOUR_BYTES = "Activations take 4 bytes: the config names float32; engines usually run such models in 2."


@frozen(kw_only=True)
class ValueType:
    """Bytes of a value as the model runs, and whether weights that no quantisation names are known to have them."""

    value_bytes: int
    is_known: bool = True


def read_value_type(root: Fields, config: Fields) -> ValueType:
    """The type of values; one that no model runs in is noted, and with it that stored bytes are not known."""
    outer, own = root.text(*_KEYS), config.text(*_KEYS)
    name = own or outer
    if name is None or name == "auto":
        root.ledger.assume(_NOT_NAMED)
        return ValueType(value_bytes=_USUAL_BYTES)
    value_bytes = _BYTES.get(name.rpartition(".")[2])
    if value_bytes is None:
        root.ledger.leave_open(f"how weights are stored: dtype {shown(name)} is not one that models run in")
        root.ledger.assume("Activations take 2 bytes (BF16).")
        return ValueType(value_bytes=_USUAL_BYTES, is_known=False)
    if value_bytes == 4:
        root.ledger.assume(_FOUR_BYTES)
    return ValueType(value_bytes=value_bytes)
