"""Vision towers: how many parameters they and their projections hold. Only the number is kept."""

from __future__ import annotations

from collections.abc import Callable

from attrs import frozen

from estimator_service.architecture.family import Family
from estimator_service.architecture.fields import Fields

_TOWER_KEYS = ("vision_config", "vision", "visual", "vision_encoder", "vit_config", "vision_tower_config")
_AUDIO_KEYS = ("audio_config", "audio_encoder", "speech_config", "audio_tower_config")
_PLAIN_TOWER = (
    "The vision tower is counted as a plain vision transformer, without what projects it to the text's width."
)
_SIGLIP_IMAGE_SIZE = 224

# The tower of Step-3.7, which its flat configs leave out: width, inner width, layers, patch, positions.
_STEP_TOWER = (1536, 8960, 47, 14, 2704)
# The tower of GLM-5.3-Flash, of which its config gives width and depth: inner width, patch, projection.
_GLM_TOWER = (4096, 14, 1536, 10_240)


_Reader = Callable[[Fields, Fields, int], "Tower | None"]


@frozen(kw_only=True)
class Tower:
    """Parameters of a tower, and of a projection to the width of the text that stands outside of it."""

    parameter_count: int = 0
    projection_parameter_count: int = 0


@frozen(kw_only=True)
class TowerBlock:
    """One block of a vision transformer: attention of `attention_width`, two or three matrices of `inner_width`."""

    width: int
    inner_width: int
    attention_width: int = 0
    gated: bool = False
    attention_bias: bool = True
    inner_bias: bool = True
    norm_vectors: int = 4
    head_norm_values: int = 0

    @property
    def parameter_count(self) -> int:
        """Parameters of the block."""
        w, inner, a = self.width, self.inner_width, self.attention_width or self.width
        inputs = 2 if self.gated else 1
        attention = 4 * w * a + (3 * a + w) * self.attention_bias
        feed_forward = (inputs + 1) * w * inner + (inputs * inner + w) * self.inner_bias
        return attention + feed_forward + self.norm_vectors * w + self.head_norm_values


def read_tower(root: Fields, family: Family, text_width: int) -> Tower:
    """The towers of a config and their projections; empty without any (`docs/formulas.md`, Parameters)."""
    for key in _AUDIO_KEYS:
        if isinstance(root.values.get(key), dict):
            root.close(key)
            root.ledger.leave_open(f"{key}: the parameters of the audio tower are not counted")
    tower = root.section(*_TOWER_KEYS)
    if family.model_types[:1] == ("step3p5",) and tower is None:
        root.ledger.assume("The config leaves the vision tower out; it is counted as that of Step-3.7-Flash.")
        return _step(text_width)
    if tower is None:
        return Tower()
    read = _read(tower, root, family, text_width)
    root.close(*_TOWER_KEYS, "img_token_compression_config")
    root.use("projector_hidden_act")
    if not family.tower_counts:
        root.ledger.assume(
            f"The vision tower, {read.parameter_count} parameters, is left out: the model is counted as it runs as a"
            " language model alone."
        )
        return Tower()
    return read


def _read(tower: Fields, root: Fields, family: Family, text_width: int) -> Tower:
    readers: tuple[tuple[str, _Reader], ...] = (
        ("fullatt_block_indexes", _qwen_2_5),
        ("spatial_merge_size", _qwen),
        ("vt_hidden_size", _kimi),
        ("position_embedding_size", _gemma_4),
        ("img_token_compression_config", _minimax),
    )
    if family.model_types[:1] == ("glm5_next",):
        readers = (("depth", _glm), *readers)
    for key, reader in readers:
        if tower.has(key):
            read = reader(tower, root, text_width)
            if read is not None:
                return read
    return _plain(tower, root, text_width)


def _qwen(tower: Fields, _root: Fields, text_width: int) -> Tower | None:
    width, inner = tower.whole("hidden_size"), tower.whole("intermediate_size")
    depth = tower.whole("depth", maximum=4096)
    patch, merge = tower.whole("patch_size", maximum=4096), tower.whole("spatial_merge_size", maximum=64)
    positions = tower.whole("num_position_embeddings", minimum=0, maximum=10**7)
    if width is None or inner is None or depth is None or patch is None or merge is None or positions is None:
        return None
    frames = tower.whole("temporal_patch_size", maximum=64) or 1
    channels = tower.whole("in_channels", "in_chans", maximum=64) or 3
    out = tower.whole("out_hidden_size") or text_width
    merged = merge * merge * width
    projection = merged * merged + merged + out * merged + out
    deep = tower.items("deepstack_visual_indexes") or ()
    block = TowerBlock(width=width, inner_width=inner)
    embedding = width * (channels * frames * patch * patch + 1) + positions * width
    projections = projection + 2 * width + len(deep) * (projection + 2 * merged)
    return Tower(parameter_count=embedding + depth * block.parameter_count + projections)


def _qwen_2_5(tower: Fields, _root: Fields, text_width: int) -> Tower | None:
    """Qwen2.5-VL: RMS norms, gated blocks, rotary positions."""
    width, inner = tower.whole("hidden_size"), tower.whole("intermediate_size")
    depth = tower.whole("depth", maximum=4096)
    patch, merge = tower.whole("patch_size", maximum=4096), tower.whole("spatial_merge_size", maximum=64)
    if width is None or inner is None or depth is None or patch is None or merge is None:
        return None
    frames = tower.whole("temporal_patch_size", maximum=64) or 2
    channels = tower.whole("in_channels", "in_chans", maximum=64) or 3
    out = tower.whole("out_hidden_size") or text_width
    merged = merge * merge * width
    block = TowerBlock(width=width, inner_width=inner, gated=True, norm_vectors=2)
    projection = width + merged * (merged + 1) + out * (merged + 1)
    embedding = width * channels * frames * patch * patch
    return Tower(parameter_count=embedding + depth * block.parameter_count + projection)


def _kimi(tower: Fields, _root: Fields, text_width: int) -> Tower | None:
    width, inner = tower.whole("vt_hidden_size"), tower.whole("vt_intermediate_size")
    depth, patch = tower.whole("vt_num_hidden_layers", maximum=4096), tower.whole("patch_size", maximum=4096)
    rows = tower.whole("init_pos_emb_height", maximum=4096)
    columns = tower.whole("init_pos_emb_width", maximum=4096)
    if width is None or inner is None or depth is None or patch is None or rows is None or columns is None:
        return None
    norm_values = 1 if tower.text("norm_type") == "rmsnorm" else 2
    block = TowerBlock(
        width=width,
        inner_width=inner,
        attention_width=tower.whole("qkv_hidden_size") or width,
        attention_bias=tower.flag("attn_bias") is not False,
        inner_bias=tower.flag("linear_bias") is not False,
        norm_vectors=2 * norm_values,
    )
    patch_bias = tower.flag("patch_embed_proj_bias") is not False
    embedding = width * (3 * patch * patch + patch_bias) + rows * columns * width
    merge = tower.wholes("merge_kernel_size", minimum=1) or (2, 2)
    merged = width * merge[0] * merge[-1]
    out = tower.whole("text_hidden_size") or text_width
    projection = 2 * width + merged * (merged + 1) + out * (merged + 1)
    return Tower(
        parameter_count=embedding + depth * block.parameter_count + norm_values * width,
        projection_parameter_count=projection,
    )


def _gemma_4(tower: Fields, _root: Fields, text_width: int) -> Tower | None:
    width, inner = tower.whole("hidden_size"), tower.whole("intermediate_size")
    depth, patch = tower.whole("num_hidden_layers", maximum=4096), tower.whole("patch_size", maximum=4096)
    positions = tower.whole("position_embedding_size", maximum=10**7)
    if width is None or inner is None or depth is None or patch is None or positions is None:
        return None
    block = TowerBlock(
        width=width,
        inner_width=inner,
        gated=True,
        attention_bias=bool(tower.flag("attention_bias")),
        inner_bias=False,
        norm_vectors=4,
        head_norm_values=2 * (tower.whole("head_dim") or 0),
    )
    embedding = 2 * positions * width + 3 * patch * patch * width
    return Tower(parameter_count=embedding + depth * block.parameter_count + text_width * width)


def _minimax(tower: Fields, root: Fields, text_width: int) -> Tower | None:
    width, inner = tower.whole("hidden_size"), tower.whole("intermediate_size")
    depth, patch = tower.whole("num_hidden_layers", maximum=4096), tower.whole("patch_size", maximum=4096)
    merging = tower.section("img_token_compression_config")
    if width is None or inner is None or depth is None or patch is None or merging is None:
        return None
    frames = merging.whole("temporal_patch_size", maximum=64) or 1
    merge = merging.whole("spatial_merge_size", maximum=64) or 1
    channels = tower.whole("num_channels", maximum=64) or 3
    middle = root.whole("projector_hidden_size") or text_width
    bias = int(root.flag("multimodal_projector_bias") is not False)
    block = TowerBlock(width=width, inner_width=inner)
    first = middle * (width + bias) + text_width * (middle + bias)
    merged = merge * merge * text_width
    second = middle * (merged + bias) + text_width * (middle + bias)
    embedding = width * channels * frames * patch * patch + 2 * width
    return Tower(parameter_count=embedding + depth * block.parameter_count, projection_parameter_count=first + second)


def _glm(tower: Fields, root: Fields, _text_width: int) -> Tower | None:
    width, depth = tower.whole("hidden_size"), tower.whole("depth", maximum=4096)
    if width is None or depth is None:
        return None
    inner, patch, middle, merger_width = _GLM_TOWER
    root.ledger.assume("What the config leaves out of the vision tower is as in the class of its model_type.")
    block = TowerBlock(width=width, inner_width=inner, gated=True, norm_vectors=2, head_norm_values=2 * 64)
    embedding = width * (3 * 2 * patch * patch + 1)
    downsampling = middle * (4 * width + 1)
    merger = middle * middle + 2 * middle + 3 * middle * merger_width
    return Tower(parameter_count=embedding + depth * block.parameter_count + width + downsampling + merger)


def _step(text_width: int) -> Tower:
    width, inner, depth, patch, positions = _STEP_TOWER
    block = TowerBlock(width=width, inner_width=inner, norm_vectors=6)
    embedding = 3 * patch * patch * width + positions * width + 2 * width
    first = 2 * width * (9 * width + 1)
    second = 4 * width * (9 * 2 * width + 1)
    return Tower(
        parameter_count=embedding + depth * block.parameter_count + first + second,
        projection_parameter_count=text_width * 4 * width,
    )


def _plain(tower: Fields, root: Fields, text_width: int) -> Tower:
    """A vision transformer with layer norms and biases, positions for the image size, and Gemma 3's projection."""
    width, inner = tower.whole("hidden_size", "embed_dim"), tower.whole("intermediate_size")
    depth = tower.whole("num_hidden_layers", "depth", maximum=4096)
    if width is None or depth is None:
        root.ledger.leave_open("the parameters of the vision tower are not counted: its width or depth is not given")
        return Tower()
    # Llama 3.2: layers that see every tile of an image follow those that see one.
    depth += tower.whole("num_global_layers", minimum=0, maximum=4096) or 0
    ratio = tower.number("mlp_ratio", maximum=100) or 4
    inner = inner or min(round(ratio * width), 10**6)
    patch = tower.whole("patch_size", maximum=4096) or 14
    image = tower.whole("image_size", maximum=10**5) or _SIGLIP_IMAGE_SIZE
    block = TowerBlock(width=width, inner_width=inner)
    positions = (image // patch) ** 2
    count = width * (3 * patch * patch + 1) + positions * width + depth * block.parameter_count + 2 * width
    if root.has("mm_tokens_per_image"):
        return Tower(parameter_count=count, projection_parameter_count=text_width * width + width)
    root.ledger.assume(_PLAIN_TOWER)
    return Tower(parameter_count=count)
