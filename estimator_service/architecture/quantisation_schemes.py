"""The quantisation sections of configs, by the tool that writes them, as one kind of scheme."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from attrs import evolve

from estimator_service.architecture.facts import LARGEST_FORMAT_COUNT, WeightFormat
from estimator_service.architecture.fields import Fields
from estimator_service.architecture.formats import MX_GROUP_SIZE, fp8, fp8_channel, grouped_integers, mx, nvfp4
from estimator_service.architecture.module_patterns import ModuleList, module_list
from estimator_service.architecture.quantisation_scheme import Scheme, Targeted, scheme_of
from estimator_service.architecture.quantisation_tools import (
    INTEGER_METHODS,
    bits_and_bytes_scheme,
    integer_scheme,
    quark_scheme,
)

_BLOCK_IN_WORDS = re.compile("([1-9][0-9]{0,4})x([1-9][0-9]{0,4})")
_IGNORE_KEYS = ("ignore", "modules_to_not_convert", "exclude_modules", "ignored_layers")
_SILENT_KEYS = [
    "activation_scheme",
    "fmt",
    "format",
    "producer",
    "quantization_status",
    "kv_cache_scheme",
    "kv_cache_quant_algo",
    "version",
    "backend",
    "global_compression_ratio",
    "scale_fmt",
    "desc_act",
    "sym",
    "true_sequential",
    "damp_percent",
    "static_groups",
    "model_name_or_path",
    "model_file_base_name",
    "checkpoint_format",
    "quantizer",
    "meta",
    "is_marlin_format",
    "moe_quant_algo",
    "sparsity_config",
    "transform_config",
    "bnb_4bit_compute_dtype",
    "bnb_4bit_quant_storage",
    "bnb_4bit_quant_type",
    "bnb_4bit_use_double_quant",
    "llm_int8_enable_fp32_cpu_offload",
    "llm_int8_has_fp16_weight",
    "llm_int8_threshold",
    "do_fuse",
    "exllama_config",
    "fuse_max_seq_len",
    "modules_to_fuse",
    "quant_storage_dtype",
    "activation_scale_ub",
    "has_zero_point",
]
_EVERYTHING = ("Linear",)
TOO_MANY_FORMATS = f"how weights are stored: the quantisation has {LARGEST_FORMAT_COUNT} formats or more"
_NO_WEIGHTS = "The quantisation is of activations or caches alone: weights are counted as the model runs."


def read_scheme(section: Fields, config: Fields) -> Scheme | None:
    """The scheme of a quantisation section; None where it is not understood, which is noted."""
    section.close(*_SILENT_KEYS, *_IGNORE_KEYS, "quantized_layers", "config_groups")
    section.use("quant_method", "quant_algo")
    ignored = module_list(_texts(section, *_IGNORE_KEYS))
    method = (section.text("quant_method") or _unnamed_method(section)).casefold()
    algorithm = (section.text("quant_algo") or "").upper()
    if not method and "quant_algo" in section.values and section.values["quant_algo"] is None:
        section.ledger.assume(_NO_WEIGHTS)
        return Scheme(targeted=())
    nested = section.section("quantization")
    if nested is not None:
        # The contents of ModelOpt's own file, which keeps everything one level down.
        return read_scheme(nested, config)
    layers = section.values.get("quantized_layers")
    if isinstance(layers, Mapping):
        section.use("group_size", "weight_block_size")
        rest = _fp8_scheme(section, config, ignored) if method == "fp8" else None
        return _by_layers(section, layers, rest)
    if section.values.get("config_groups") is not None:
        return None if _is_sparse(section) else _by_groups(section, ignored, algorithm)
    scheme = _by_method(section, config, method, algorithm, ignored)
    if scheme is None:
        section.ledger.leave_open(
            f"how weights are stored: quantisation {method[:40] or algorithm[:40] or 'without a name'}"
        )
    return scheme


def _unnamed_method(section: Fields) -> str:
    """The tool whose file is so old that it does not say: AWQ's width has a name of its own, GPTQ's is in bits."""
    if section.states("quant_algo", "quantization", "config_groups"):
        return ""
    return "awq" if section.states("w_bit") else "gptq" if section.states("bits") else ""


def _by_method(section: Fields, config: Fields, method: str, algorithm: str, ignored: ModuleList) -> Scheme | None:
    if method in ("fp8", "fbgemm_fp8"):
        return _fp8_scheme(section, config, ignored, by_channel=method == "fbgemm_fp8")
    if method == "mxfp4":
        return Scheme(targeted=(Targeted(weight_format=mx(4)),), ignored=ignored, experts_only=True)
    if method in INTEGER_METHODS:
        return integer_scheme(section, method, _texts(section, *_IGNORE_KEYS))
    if method == "quark":
        return quark_scheme(section)
    if method == "bitsandbytes":
        return bits_and_bytes_scheme(section)
    chosen_by_name = _format_of_algorithm(algorithm, section.whole("group_size", minimum=1))
    return (
        None if chosen_by_name is None else Scheme(targeted=(Targeted(weight_format=chosen_by_name),), ignored=ignored)
    )


def _fp8_scheme(section: Fields, config: Fields, ignored: ModuleList, *, by_channel: bool = False) -> Scheme:
    block = section.wholes("weight_block_size", minimum=1)
    if block == (1, MX_GROUP_SIZE) and section.values.get("scale_fmt") == "ue8m0":
        chosen = mx(8)
    else:
        chosen = fp8_channel() if by_channel else fp8((block[0], block[1]) if block and len(block) == 2 else None)
    experts_format = None
    if config.text("expert_dtype") == "fp4":
        # DeepSeek-V4 keeps its experts in FP4 with a byte for 32 weights, beside FP8 elsewhere.
        experts_format = mx(4)
    return Scheme(targeted=(Targeted(weight_format=chosen),), ignored=ignored, experts_format=experts_format)


def _by_layers(section: Fields, layers: Mapping[str, Any], rest: Scheme | None) -> Scheme | None:
    """Modules listed one by one, each with its format (ModelOpt's mixed precision); `rest` is for all others.

    None where a format is not understood.
    """
    named: list[tuple[WeightFormat, str]] = []
    for name, entry in layers.items():
        algorithm = entry.get("quant_algo") if isinstance(entry, Mapping) else None
        group_size = entry.get("group_size") if isinstance(entry, Mapping) else None
        known_size = group_size if isinstance(group_size, int) and 0 < group_size <= 10**6 else None
        chosen = _format_of_algorithm(str(algorithm).upper(), known_size)
        if chosen is None:
            section.ledger.leave_open(f"how modules with quantisation {str(algorithm)[:40]} are stored")
            return None
        named.append((chosen, name))
    scheme = scheme_of(named, None)
    if scheme is None:
        section.ledger.leave_open(TOO_MANY_FORMATS)
    elif rest is not None:
        scheme = evolve(scheme, targeted=(*scheme.targeted, *rest.targeted))
    return scheme


def _by_groups(section: Fields, ignored: ModuleList, algorithm: str) -> Scheme | None:
    """Groups of modules with one format each (compressed-tensors, and ModelOpt in its form)."""
    groups = section.section("config_groups")
    targeted: list[Targeted] = []
    if groups is None:
        if section.values["config_groups"]:
            section.ledger.leave_open("how weights are stored: config_groups is not an object")
            return None
        section.ledger.assume(_NO_WEIGHTS)
        return Scheme(targeted=())
    if len(groups.values) >= LARGEST_FORMAT_COUNT:
        section.ledger.leave_open(TOO_MANY_FORMATS)
        return None
    for name, group in groups.values.items():
        groups.use(name)
        own = groups.section(name)
        weights = own.section("weights") if own is not None else None
        if own is None or weights is None or not isinstance(group, Mapping):
            continue
        chosen = _format_of_weights(weights, str(own.values.get("format") or section.values.get("format")), algorithm)
        if chosen is None:
            section.ledger.leave_open(f"how modules of {name[:40]} are stored")
            return None
        targets = own.values.get("targets")
        names = [t for t in targets if isinstance(t, str)] if isinstance(targets, list) else list(_EVERYTHING)
        everything = any(target in _EVERYTHING for target in names)
        targeted.append(Targeted(weight_format=chosen, modules=None if everything else module_list(names)))
    if not targeted:
        section.ledger.assume(_NO_WEIGHTS)
    return Scheme(targeted=tuple(targeted), ignored=ignored)


def _is_sparse(section: Fields) -> bool:
    """Whether zeros are left out of what is stored, of which the config does not say how many there are."""
    sparsity = section.section("sparsity_config")
    layout = sparsity.values.get("format") if sparsity is not None else None
    named = layout not in (None, "dense") or section.values.get("format") == "marlin-24"
    if named:
        section.ledger.leave_open("how weights are stored: they are stored without their zeros")
    return named


def _format_of_weights(weights: Fields, packing: str, algorithm: str) -> WeightFormat | None:
    bits = weights.whole("num_bits", minimum=1, maximum=16)
    kind = weights.text("type") or "int"
    group_size = weights.whole("group_size", minimum=-1) or 0
    if bits is None:
        return None
    if kind == "float" and bits == 4:
        return mx(4) if "mxfp4" in packing else nvfp4(max(1, group_size) if group_size > 0 else 16)
    if kind == "float" and bits == 8:
        if group_size == 32 or algorithm == "MXFP8":
            return mx(8)
        block = _block_of(weights)
        if block is not None:
            return fp8(block)
        return fp8_channel() if weights.text("strategy") == "channel" else fp8(None)
    symmetric = weights.flag("symmetric") is not False
    return grouped_integers(bits, max(0, group_size), zero_points=not symmetric)


def _block_of(weights: Fields) -> tuple[int, int] | None:
    """Rows and columns of a block: `[128, 128]`, or `128x128` as older versions write it."""
    value = weights.values.get("block_structure")
    if isinstance(value, str):
        weights.use("block_structure")
        found = _BLOCK_IN_WORDS.fullmatch(value)
        return None if found is None else (int(found.group(1)), int(found.group(2)))
    block = weights.wholes("block_structure", minimum=1) if isinstance(value, list) else None
    return (block[0], block[1]) if block and len(block) == 2 else None


def _format_of_algorithm(algorithm: str, group_size: int | None) -> WeightFormat | None:
    """ModelOpt's names."""
    known: dict[str, WeightFormat] = {
        "FP8": fp8(None),
        "FP8_PER_CHANNEL_PER_TOKEN": fp8_channel(),
        "FP8_PB_WO": fp8((128, 128)),
        "FP8_PB_REAL": fp8((128, 128)),
        "NVFP4": nvfp4(group_size or 16),
        "NVFP4_AWQ": nvfp4(group_size or 16),
        "W4A16_NVFP4": nvfp4(group_size or 16),
        "MXFP8": mx(8),
        "MXFP4": mx(4),
        "W4A8_MXFP4_FP8": mx(4),
        "W4A16_AWQ": grouped_integers(4, group_size or 128, zero_points=False),
        "W4A8_AWQ": grouped_integers(4, group_size or 128, zero_points=False),
        "W8A16": grouped_integers(8, 0, zero_points=False),
        "INT8_SQ": grouped_integers(8, 0, zero_points=False),
        "W8A8_SQ_PER_CHANNEL": grouped_integers(8, 0, zero_points=False),
    }
    return known.get(algorithm)


def _texts(section: Fields, *names: str) -> list[object]:
    found: list[object] = []
    for name in names:
        value = section.values.get(name)
        if isinstance(value, list):
            found.extend(value)
    return found
