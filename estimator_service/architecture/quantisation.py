"""How the config says that weights are stored: a format for each module of each layer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from attrs import evolve

from estimator_service.architecture.facts import Architecture, Experts, LayerGroup, StoredModules, WeightFormat
from estimator_service.architecture.fields import Fields
from estimator_service.architecture.quantisation_scheme import Scheme
from estimator_service.architecture.quantisation_schemes import read_scheme
from estimator_service.architecture.ranges import ranges_of
from estimator_service.architecture.weight import Weight
from estimator_service.architecture.weights import EMBEDDING_MODULE, HEAD_MODULE, layer_weights
from linkbound.domain.catalog import WeightFormatSource
from linkbound.domain.quantisation_file import QUANTISATION_KEYS
from linkbound.domain.rules import shown

NO_QUANTISATION = (
    "The config names no quantisation, so weights are counted in its number type; a checkpoint that is quantised in a"
    " file of its own (hf_quant_config.json) has fewer bytes, and is imported with that file."
)

# What checkpoints call the same module.
_ALIASES = {
    "linear_attn.in_proj_ba": ("linear_attn.in_proj_b", "linear_attn.in_proj_a"),
    "self_attn.q_a_proj": ("self_attn.wq_a", "attn.wq_a", "attn.q_a_proj"),
    "self_attn.q_b_proj": ("self_attn.wq_b", "attn.wq_b"),
    "self_attn.kv_proj": ("self_attn.wkv", "attn.wkv"),
    "self_attn.o_a_proj": ("self_attn.wo_a", "attn.wo_a"),
    "self_attn.o_b_proj": ("self_attn.wo_b", "attn.wo_b"),
}
_PREFIX_ALIASES = (
    (
        "mlp.experts.",
        ("block_sparse_moe.experts.", "ffn.experts.", "mixer.experts.", "experts.", "feed_forward.experts."),
    ),
    ("mlp.shared_experts.", ("mlp.shared_expert.", "block_sparse_moe.shared_experts.", "ffn.shared_experts.")),
    ("mlp.shared_experts.", ("mixer.shared_experts.", "feed_forward.shared_expert.", "share_expert.")),
    ("mlp.gate", ("block_sparse_moe.gate", "mlp.router", "router", "ffn.gate", "mixer.gate")),
    ("mlp.fc", ("mixer.fc", "block_sparse_moe.routed_expert_")),
    ("mlp.", ("feed_forward.", "mixer.", "ffn.")),
    ("self_attn.", ("attn.", "attention.", "mixer.")),
    ("linear_attn.", ("self_attn.", "attn.")),
)
_FIRST_EXPERT = "0."
_DRAFT_PREFIX = "mtp.layers.0."


def read_quantisation(root: Fields, config: Fields, architecture: Architecture) -> Architecture:
    """`architecture`, with the formats that the config gives to its modules (`docs/formulas.md`, Parameters)."""
    section = root.section(*QUANTISATION_KEYS) or config.section(*QUANTISATION_KEYS)
    if section is None:
        for fields, key in ((fields, key) for fields in (root, config) for key in QUANTISATION_KEYS):
            value = fields.values.get(key)
            if value:
                fields.use(key)
                root.ledger.leave_open(f"how weights are stored: {fields.path_of(key)} {shown(value)} is not an object")
                return evolve(architecture, weight_format_source=WeightFormatSource.UNSPECIFIED)
        root.ledger.assume(NO_QUANTISATION)
        # What is not even the number type stays open.
        source = WeightFormatSource.DATA_TYPE if architecture.knows_formats else architecture.weight_format_source
        return evolve(architecture, weight_format_source=source)
    scheme = read_scheme(section, config)
    if scheme is None:
        return evolve(architecture, weight_format_source=WeightFormatSource.UNSPECIFIED)
    if scheme.experts_only and not _has_experts(architecture):
        root.ledger.leave_open("how weights are stored: the quantisation is for routed experts, and there are none")
        return evolve(architecture, weight_format_source=WeightFormatSource.UNSPECIFIED)
    for text in scheme.not_understood[:4]:
        root.ledger.leave_open(f"which modules the quantisation means by {text[:200]}")
    return _apply(architecture, scheme)


def _has_experts(architecture: Architecture) -> bool:
    return any(isinstance(block, Experts) for group in architecture.layers for block in group.feed_forwards)


def _apply(architecture: Architecture, scheme: Scheme) -> Architecture:
    formats: dict[str, WeightFormat] = {}
    groups: list[LayerGroup] = []
    draft_groups: list[LayerGroup] = []
    for entry in layer_weights(architecture):
        stored = _split(entry.group, entry.weights, scheme, formats, is_draft=entry.is_draft)
        (draft_groups if entry.is_draft else groups).extend(stored)
    around = {EMBEDDING_MODULE: ("model.embed_tokens",), HEAD_MODULE: ("lm_head", "head")}
    stored_around = []
    for module, names in around.items():
        chosen = scheme.format_of(None, (module, *names), is_plain=True, is_expert=False)
        if chosen is not None:
            stored_around.append(StoredModules(weight_format=_named(chosen, formats), modules=(module,)))
    draft = architecture.draft
    return evolve(
        architecture,
        layers=tuple(groups),
        draft=None if draft is None else evolve(draft, layers=tuple(draft_groups)),
        formats=tuple(evolve(weight_format, name=name) for name, weight_format in sorted(formats.items())),
        stored_around=tuple(stored_around),
    )


def _split(
    group: LayerGroup,
    weights: Sequence[Weight],
    scheme: Scheme,
    formats: dict[str, WeightFormat],
    *,
    is_draft: bool,
) -> Iterator[LayerGroup]:
    """`group`, cut into the layers that are stored alike."""
    matrices = [weight for weight in weights if weight.rows]
    names = [tuple(_names_of(weight.module)) for weight in matrices]
    if len(group.feed_forwards) > 1:
        # Beside a dense block the experts do not stand within `mlp`.
        names = [_beside_a_dense_block(module_names) for module_names in names]
    alike: dict[tuple[str, ...], list[int]] = {}
    for layer in group.layer_indexes:
        chosen = []
        for weight, module_names in zip(matrices, names, strict=True):
            is_expert = weight.module.startswith("mlp.experts.")
            known = _draft_names(module_names) if is_draft else module_names
            where = None if is_draft else layer
            found = scheme.format_of(where, known, is_plain=weight.plain, is_expert=is_expert)
            chosen.append("" if found is None else _named(found, formats))
        alike.setdefault(tuple(chosen), []).append(layer)
    for chosen_names, layers in alike.items():
        yield evolve(group, layers=ranges_of(layers), stored=_stored(matrices, chosen_names))


def _named(weight_format: WeightFormat, formats: dict[str, WeightFormat]) -> str:
    """The name under which `formats` keeps the format: its own, with a number where another one has that."""
    name, number = weight_format.name, 1
    while formats.setdefault(name, weight_format) != weight_format:
        number += 1
        name = f"{weight_format.name}_{number}"
    return name


def _stored(matrices: Sequence[Weight], names: Sequence[str]) -> tuple[StoredModules, ...]:
    by_format: dict[str, dict[str, None]] = {}
    for weight, name in zip(matrices, names, strict=True):
        if name:
            by_format.setdefault(name, {})[weight.module] = None
    return tuple(StoredModules(weight_format=name, modules=tuple(modules)) for name, modules in by_format.items())


def _names_of(module: str) -> Iterator[str]:
    """What checkpoints may call `module` within its layer."""
    yield from _with_expert(module)
    yield from _ALIASES.get(module, ())
    for prefix, others in _PREFIX_ALIASES:
        if module.startswith(prefix):
            for other in others:
                yield from _with_expert(other + module.removeprefix(prefix))


def _with_expert(module: str) -> Iterator[str]:
    """The module, and what it is called in the first expert where it is in one; experts of a layer are stored alike."""
    yield module
    before, mark, after = module.partition(".experts.")
    if mark:
        yield f"{before}{mark}{_FIRST_EXPERT}{after}"
        yield from (f"{before}{mark}{_FIRST_EXPERT}{w}" for w in _SHORT_NAMES.get(after, ()))


_SHORT_NAMES: Mapping[str, tuple[str, ...]] = {"gate_proj": ("w1",), "down_proj": ("w2",), "up_proj": ("w3",)}


def _beside_a_dense_block(names: tuple[str, ...]) -> tuple[str, ...]:
    inner = ("mlp.experts.", "mlp.shared_experts.", "mlp.gate", "mlp.router")
    if not names[0].startswith(inner) or names[0].startswith("mlp.gate_proj"):
        return names
    return tuple(name for name in names if not name.startswith(("mlp.", "ffn.", "mixer.", "feed_forward.")))


def _draft_names(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(_DRAFT_PREFIX + name for name in names) + tuple(names)
