"""The quantisation sections that GPTQ, AWQ, AutoRound, bitsandbytes and Quark write."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from estimator_service.architecture.facts import WeightFormat
from estimator_service.architecture.fields import Fields
from estimator_service.architecture.formats import (
    bits_and_bytes,
    bits_and_bytes_4,
    fp8,
    fp8_channel,
    grouped_integers,
    mx,
    nvfp4,
)
from estimator_service.architecture.module_patterns import module_list
from estimator_service.architecture.quantisation_scheme import Scheme, Targeted, scheme_of

INTEGER_METHODS = ("awq", "gptq", "auto-round", "auto_round", "intel/auto-round", "inc", "gptq_marlin", "awq_marlin")
_QUARK_KEYS = (
    "global_quant_config",
    "layer_quant_config",
    "exclude",
    "export",
    "algo_config",
    "quant_mode",
    "softmax_quant_spec",
    "kv_cache_quant_config",
    "kv_cache_post_rope",
    "kv_cache_group",
)
_INTEGER_KEYS = (
    "block_name_to_quantize",
    "packing_format",
    "act_bits",
    "act_data_type",
    "quant_lm_head",
    "lm_head",
)
_FORMAT_KEYS = ("bits", "w_bit", "weight_bits", "group_size", "q_group_size", "data_type", "zero_point")
_NOT_QUANTISED_BITS = 16
NO_BITS = "how weights are stored: the quantisation names no bits"
_GROUP_NUMBER_BITS = 32
"""GPTQ keeps the group of each input as a number of 32 bits."""


def integer_scheme(section: Fields, method: str, ignored_names: Iterable[object]) -> Scheme | None:
    """GPTQ, AWQ and AutoRound: one format, and modules that are told to have another one or none.

    None where a module has a type that is not understood.
    """
    section.close("extra_config", "dynamic")
    section.use(*_INTEGER_KEYS)
    stated = _of_format(section.values)
    chosen = _integer_format(section, method, stated)
    if chosen is None:
        return None
    targeted: list[tuple[WeightFormat, str]] = []
    ignored = list(ignored_names)
    for name, entry in _exceptions(section):
        if entry is None:
            ignored.append(name)
            continue
        own = _integer_format(section, method, {**stated, **_of_format(entry)})
        if own is None:
            return None
        if own.weight_bits >= _NOT_QUANTISED_BITS:
            ignored.append(name)
        else:
            targeted.append((own, name))
    if section.values.get("lm_head") is True or section.values.get("quant_lm_head") is True:
        targeted.append((chosen, "lm_head"))
    return scheme_of(targeted, chosen, ignored)


def _exceptions(section: Fields) -> Iterable[tuple[str, Mapping[str, Any] | None]]:
    """Names of modules, or expressions for them, with what differs there; None: they are not quantised."""
    extra, dynamic = section.values.get("extra_config"), section.values.get("dynamic")
    for name, entry in extra.items() if isinstance(extra, Mapping) else ():
        if isinstance(entry, Mapping):
            yield (f"re:{name}" if ".*" in name else name), entry
    for name, entry in dynamic.items() if isinstance(dynamic, Mapping) else ():
        if isinstance(entry, Mapping):
            yield f"re:{name.removeprefix('+:').removeprefix('-:')}", None if name.startswith("-:") else entry


def _of_format(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: values[name] for name in _FORMAT_KEYS if name in values}


def _integer_format(section: Fields, method: str, values: Mapping[str, Any]) -> WeightFormat | None:
    own = Fields(values, section.ledger, field=section.field, path=section.path_of(""))
    bits = own.whole("bits", "w_bit", "weight_bits", minimum=1, maximum=32)
    group_size = max(0, own.whole("group_size", "q_group_size", minimum=-1) or 0)
    kind = (own.text("data_type") or "int").casefold()
    zero_points = own.flag("zero_point") is not False
    if kind.startswith("nv_fp"):
        return nvfp4(group_size or 16)
    if bits is None:
        section.ledger.leave_open(NO_BITS)
        return None
    if kind.startswith("mx_fp"):
        return mx(bits)
    if kind.startswith("fp"):
        return fp8_channel() if bits == 8 else None
    if not kind.startswith(("int", "uint")):
        return None
    column_bits = _GROUP_NUMBER_BITS if method.startswith("gptq") else 0
    return grouped_integers(bits, group_size, zero_points=zero_points, column_bits=column_bits)


def bits_and_bytes_scheme(section: Fields) -> Scheme:
    """bitsandbytes, by the width that the config loads."""
    section.use("load_in_4bit", "load_in_8bit", "_load_in_4bit", "_load_in_8bit", "llm_int8_skip_modules")
    skipped = section.values.get("llm_int8_skip_modules")
    doubled = section.values.get("bnb_4bit_use_double_quant") is True
    chosen = bits_and_bytes_4(doubled=doubled) if section.values.get("load_in_4bit") else bits_and_bytes()
    names = skipped if isinstance(skipped, list) else []
    return Scheme(targeted=(Targeted(weight_format=chosen),), ignored=module_list(names))


def quark_scheme(section: Fields) -> Scheme | None:
    """AMD Quark: one format, others by name, and names that are left alone; None where a type is not understood."""
    section.close(*_QUARK_KEYS)
    chosen = _quark_format(section, section.values.get("global_quant_config"))
    by_name = section.values.get("layer_quant_config")
    if chosen is None or section.values.get("layer_type_quant_config"):
        return None
    targeted: list[tuple[WeightFormat, str]] = []
    for name, entry in by_name.items() if isinstance(by_name, Mapping) else ():
        own = _quark_format(section, entry)
        if own is None:
            return None
        targeted.append((own, name))
    excluded = section.values.get("exclude")
    names = excluded if isinstance(excluded, list) else []
    return scheme_of(targeted, chosen, names)


def _quark_format(section: Fields, config: object) -> WeightFormat | None:
    weight = config.get("weight") if isinstance(config, Mapping) else None
    if not isinstance(weight, Mapping):
        return None
    own = Fields(weight, section.ledger, field=section.field, path=section.path_of("weight."))
    kind, scheme = (own.text("dtype") or "").casefold(), own.text("qscheme") or ""
    group_size = max(0, own.whole("group_size", minimum=-1) or 0)
    if kind in ("fp4", "mxfp4", "fp6_e3m2", "fp6_e2m3"):
        bits = 4 if "fp4" in kind else 6
        return mx(bits) if group_size in (0, 32) else None
    if kind.startswith("fp8"):
        return fp8_channel() if scheme == "per_channel" else fp8(None) if scheme == "per_tensor" else None
    whole_number_bits = {"int4": 4, "uint4": 4, "int8": 8, "uint8": 8}.get(kind)
    if whole_number_bits is None:
        return None
    zero_points = kind.startswith("u") or own.flag("symmetric") is False
    return grouped_integers(whole_number_bits, group_size if scheme == "per_group" else 0, zero_points=zero_points)
