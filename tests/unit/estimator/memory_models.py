"""Small models with parts and caches that are easy to count by hand."""

from attrs import evolve

from linkbound.domain.catalog import CacheGroup, Hardware, Model, ModelPart, ParameterGroup, WeightSplit
from linkbound.domain.layout import ExpertParallelism, ParallelLayout
from tests.unit.estimator.models import small_model


def group(
    part: ModelPart,
    weight_bytes: int | None,
    *,
    split: WeightSplit = WeightSplit.SLICED,
    layers: int = 0,
    parameters: int | None = None,
    active: int | None = None,
) -> ParameterGroup:
    count = parameters if parameters is not None else weight_bytes or 0
    return ParameterGroup(
        part=part,
        parameter_count=count,
        active_parameter_count=count if active is None else active,
        weight_bytes=weight_bytes,
        split=split,
        layer_count=layers,
    )


EMBEDDING = group(ModelPart.EMBEDDING, 640, parameters=640, active=64)
HEAD = group(ModelPart.LM_HEAD, 320)
QUERIES = group(ModelPart.ATTENTION, 800, layers=8)
KEYS = group(ModelPart.ATTENTION, 160, layers=8, split=WeightSplit.KEY_VALUE_HEADS)
EXPERTS = group(ModelPart.ROUTED_EXPERTS, 9600, layers=6, active=1200)
DENSE = group(ModelPart.DENSE_MLP, 240, layers=2)
NORMS = group(ModelPart.NORM, 80, layers=8, split=WeightSplit.REPLICATED)
DRAFTS = group(ModelPart.MTP, 1000, active=500)

HEADS_CACHE = CacheGroup(reason="keys and values", layer_count=8, values_per_token=40, split_head_count=4)
LATENT_CACHE = CacheGroup(reason="latents", layer_count=8, values_per_token=40, fp8_bytes_per_token=50, read_tokens=16)
WINDOW_CACHE = CacheGroup(reason="window", layer_count=2, values_per_token=40, split_head_count=4, window_tokens=10)
STATE_CACHE = CacheGroup(reason="state", layer_count=6, state_bytes_per_request=800, split_head_count=8)

HARDWARE = Hardware(
    hardware_id="box", display_name="Box", memory_bytes=10**10, memory_bandwidth_bytes_per_second=10**11
)


def parts_model(
    groups: tuple[ParameterGroup, ...] = (EMBEDDING, HEAD, QUERIES, KEYS, EXPERTS, DENSE, NORMS, DRAFTS),
    caches: tuple[CacheGroup, ...] = (HEADS_CACHE,),
) -> Model:
    """8 layers, 16 attention and 4 key-value heads, 8 experts of which a token uses one."""
    return evolve(
        small_model(heads=16),
        layer_count=8,
        expert_count=8,
        active_expert_count=1,
        mtp_layer_count=1,
        weight_bits_per_parameter=None,
        parameter_groups=groups,
        cache_groups=caches,
        collectives=tuple(evolve(row, part=ModelPart.ROUTED_EXPERTS) for row in small_model().collectives),
    )


def tp(size: int) -> ParallelLayout:
    return ParallelLayout(tensor_parallel_size=size)


def spread(size: int, groups: int, kind: ExpertParallelism) -> ParallelLayout:
    return ParallelLayout(tensor_parallel_size=size, data_parallel_size=groups, expert_parallelism=kind)
