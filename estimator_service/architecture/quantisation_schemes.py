"""The quantisation sections of configs, by the tool that writes them, as one kind of scheme."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from attrs import field, frozen

from estimator_service.architecture.facts import WeightFormat
from estimator_service.architecture.fields import Fields
from estimator_service.architecture.formats import fp8, fp8_channel, grouped_integers, mx, nvfp4
from estimator_service.architecture.module_patterns import ModuleList, module_list

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
    "lm_head",
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


@frozen(kw_only=True)
class Targeted:
    """A format and the modules that have it; no modules: every linear one."""

    weight_format: WeightFormat
    modules: ModuleList | None = None


@frozen(kw_only=True)
class Scheme:
    """Which format a module has: the first of `targeted` that means it, unless `ignored` does.

    `plain` modules (embeddings, heads, routers) have one only where a list names them. `experts_format` is that of
    routed experts where it differs; `experts_only`: nothing else is quantised.
    """

    targeted: tuple[Targeted, ...]
    ignored: ModuleList = field(factory=ModuleList)
    experts_format: WeightFormat | None = None
    experts_only: bool = False

    @property
    def not_understood(self) -> Sequence[str]:
        """Patterns that mean nothing here."""
        lists = [self.ignored, *(entry.modules for entry in self.targeted if entry.modules is not None)]
        return [text for modules in lists for text in modules.not_understood]

    def format_of(
        self, layer: int | None, names: Sequence[str], *, is_plain: bool, is_expert: bool
    ) -> WeightFormat | None:
        """The format of a module of `layer` that is called one of `names`; None: as the model runs."""
        named = next(
            (e.weight_format for e in self.targeted if e.modules is not None and e.modules.holds(layer, names)), None
        )
        if named is not None:
            return named
        if is_plain or (self.experts_only and not is_expert) or self.ignored.holds(layer, names):
            return None
        if is_expert and self.experts_format is not None:
            return self.experts_format
        return next((e.weight_format for e in self.targeted if e.modules is None), None)


def read_scheme(section: Fields, config: Fields) -> Scheme | None:
    """The scheme of a quantisation section; None where it is not understood, which is noted."""
    section.close(*_SILENT_KEYS, *_IGNORE_KEYS, "quantized_layers", "config_groups")
    section.use("quant_method", "quant_algo")
    ignored = module_list(_texts(section, *_IGNORE_KEYS))
    method = (section.text("quant_method") or "").casefold()
    algorithm = (section.text("quant_algo") or "").upper()
    layers = section.values.get("quantized_layers")
    if isinstance(layers, Mapping):
        section.use("group_size", "weight_block_size")
        rest = _fp8_scheme(section, config, ignored) if method == "fp8" else None
        return _by_layers(section, layers, rest)
    if section.values.get("config_groups") is not None:
        return _by_groups(section, ignored, algorithm)
    scheme = _by_method(section, config, method, algorithm, ignored)
    if scheme is None:
        section.ledger.leave_open(
            f"how weights are stored: quantisation {method[:40] or algorithm[:40] or 'without a name'}"
        )
    return scheme


def _by_method(section: Fields, config: Fields, method: str, algorithm: str, ignored: ModuleList) -> Scheme | None:
    if method in ("fp8", "fbgemm_fp8"):
        return _fp8_scheme(section, config, ignored, by_channel=method == "fbgemm_fp8")
    if method == "mxfp4":
        return Scheme(targeted=(Targeted(weight_format=mx(4)),), ignored=ignored, experts_only=True)
    if method in ("awq", "gptq", "auto-round", "auto_round", "gptq_marlin", "awq_marlin"):
        bits, group_size = _bits(section), section.whole("group_size", "q_group_size", minimum=-1) or 0
        zero_points = section.flag("zero_point") is not False
        # GPTQ keeps the group of each input as a 32-bit number.
        column_bits = 32 if method.startswith("gptq") else 0
        chosen = grouped_integers(bits, max(0, group_size), zero_points=zero_points, column_bits=column_bits)
        return Scheme(targeted=(Targeted(weight_format=chosen),), ignored=ignored)
    if method == "bitsandbytes":
        return _bits_and_bytes(section)
    chosen_by_name = _format_of_algorithm(algorithm, section.whole("group_size", minimum=1))
    return (
        None if chosen_by_name is None else Scheme(targeted=(Targeted(weight_format=chosen_by_name),), ignored=ignored)
    )


def _fp8_scheme(section: Fields, config: Fields, ignored: ModuleList, *, by_channel: bool = False) -> Scheme:
    block = section.wholes("weight_block_size", minimum=1)
    chosen = fp8_channel() if by_channel else fp8((block[0], block[1]) if block and len(block) == 2 else None)
    experts_format = None
    if config.text("expert_dtype") == "fp4":
        # DeepSeek-V4 keeps its experts in FP4 with a byte for 32 weights, beside FP8 elsewhere.
        experts_format = mx(4)
    return Scheme(targeted=(Targeted(weight_format=chosen),), ignored=ignored, experts_format=experts_format)


def _bits_and_bytes(section: Fields) -> Scheme:
    section.use("load_in_4bit", "load_in_8bit", "_load_in_4bit", "_load_in_8bit", "llm_int8_skip_modules")
    bits = 4 if section.values.get("load_in_4bit") else 8
    skipped = module_list(_texts(section, "llm_int8_skip_modules"))
    # 4 bits: a float32 for 64 weights, itself quantised where use_double_quant; 8 bits: one for each output.
    chosen = grouped_integers(bits, 64 if bits == 4 else 0, zero_points=False)
    return Scheme(targeted=(Targeted(weight_format=chosen),), ignored=skipped)


def _bits(section: Fields) -> int:
    return section.whole("bits", "w_bit", "weight_bits", minimum=1, maximum=16) or 4


def _by_layers(section: Fields, layers: Mapping[str, Any], rest: Scheme | None) -> Scheme:
    """Modules listed one by one, each with its format (ModelOpt's mixed precision); `rest` is for all others."""
    by_format: dict[WeightFormat, list[str]] = {}
    for name, entry in layers.items():
        algorithm = entry.get("quant_algo") if isinstance(entry, Mapping) else None
        group_size = entry.get("group_size") if isinstance(entry, Mapping) else None
        known_size = group_size if isinstance(group_size, int) and 0 < group_size <= 10**6 else None
        chosen = _format_of_algorithm(str(algorithm).upper(), known_size)
        if chosen is None:
            section.ledger.leave_open(f"how modules with quantisation {str(algorithm)[:40]} are stored")
        else:
            by_format.setdefault(chosen, []).append(name)
    targeted = tuple(Targeted(weight_format=f, modules=module_list(names)) for f, names in by_format.items())
    if rest is None:
        return Scheme(targeted=targeted)
    return Scheme(targeted=(*targeted, *rest.targeted), ignored=ModuleList())


def _by_groups(section: Fields, ignored: ModuleList, algorithm: str) -> Scheme | None:
    """Groups of modules with one format each (compressed-tensors, and ModelOpt in its form)."""
    groups = section.section("config_groups")
    if groups is None:
        return None
    targeted = []
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
    return Scheme(targeted=tuple(targeted), ignored=ignored) if targeted else None


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
        block = (
            weights.wholes("block_structure", minimum=1)
            if isinstance(weights.values.get("block_structure"), list)
            else None
        )
        if block and len(block) == 2:
            return fp8((block[0], block[1]))
        return fp8_channel() if weights.text("strategy") == "channel" else fp8(None)
    symmetric = weights.flag("symmetric") is not False
    return grouped_integers(bits, max(0, group_size), zero_points=not symmetric)


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
