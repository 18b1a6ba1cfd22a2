"""The file beside a config that says how the weights are quantised, where the config does not say it itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from linkbound.domain.errors import InvalidArgumentError, Violation

FILE_NAMES = ("hf_quant_config.json", "quantize_config.json", "quant_config.json")
"""What ModelOpt, GPTQ and AWQ call it, in the order in which it is looked for."""

QUANTISATION_KEYS = ("quantization_config", "quant_config", "compression_config")
"""What configs call the section about it; the first is the usual one."""

ONLY_A_QUANTISATION = (
    "says how the weights of a checkpoint are stored, and nothing of the model: give the config.json that lies beside"
    " it, and this one as its quantisation (quantization_json; on the command line --quantization, or their folder)"
)
NAMED_TWICE = (
    "The config names its quantisation itself, which engines read first: the file that was given beside it is not used."
)
_SIGNS = (
    *("quantization", "quant_method", "quant_algo", "quantized_layers", "config_groups", "global_quant_config"),
    *("bits", "w_bit"),
)
_NO_QUANTISATION = f"names no quantisation; {', '.join(FILE_NAMES[:-1])} and {FILE_NAMES[-1]} do"


def is_quantisation(values: Mapping[str, Any]) -> bool:
    """Whether an object says how weights are stored, as the files beside a config do."""
    return any(values.get(sign) for sign in _SIGNS)


def names_quantisation(config: Mapping[str, Any]) -> bool:
    """Whether a config says so itself, at its top or in one of its parts."""
    sections = (config, *(value for value in config.values() if isinstance(value, Mapping)))
    return any(section.get(key) for section in sections for key in QUANTISATION_KEYS)


def with_quantisation(config: Mapping[str, Any], quantisation: Mapping[str, Any], field: str) -> Mapping[str, Any]:
    """`config` with the quantisation in the object of `field`, if it does not name its own.

    The object may be the config of a quantised checkpoint too. Raises InvalidArgumentError where it names none.
    """
    own = quantisation_in(quantisation)
    if own is None:
        raise InvalidArgumentError([Violation(field, _NO_QUANTISATION)])
    return config if names_quantisation(config) else {**config, QUANTISATION_KEYS[0]: own}


def quantisation_in(values: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """What a file beside a config, or the config of a quantised checkpoint, says about it; None where it names none."""
    sections = (values.get(key) for key in QUANTISATION_KEYS)
    own = next((section for section in sections if isinstance(section, Mapping)), values)
    return own if is_quantisation(own) else None
