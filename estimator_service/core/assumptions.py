"""What answers assume, in words: each sentence once, joined by the answer that relies on it."""

from __future__ import annotations

from collections.abc import Sequence

from estimator_service.core.packets import (
    DEFAULT_ETHERNET_MTU_BYTES,
    DEFAULT_INFINIBAND_MTU_BYTES,
    DEFAULT_ROCE_MTU_BYTES,
    INFINIBAND_HEADERS,
    PACKET_HEADER_BYTES,
    TCP_HEADERS,
)
from linkbound.domain.calibration import Calibration
from linkbound.domain.catalog import Model, ModelPart, WeightFormatSource
from linkbound.domain.collective import CollectiveAlgorithm
from linkbound.domain.collective_estimate import CollectiveRequest
from linkbound.domain.layout import ExpertParallelism, ParallelLayout
from linkbound.domain.link import Link, LinkTransport, RateSource, ResolvedLink
from linkbound.domain.memory import MemoryFitRequest
from linkbound.domain.training import TrainingSharding, TrainingStepRequest
from linkbound.domain.workload import DecodeWorkload, PrefillWorkload

RING = "Collectives run as rings: a rank sends 2 (N - 1) / N of an all-reduce and (N - 1) / N of a gather."
ONE_RANK_PER_LINK = "Every rank has a link of its own; with different links, the slowest counts."
OWN_LINKS = "Every rank has a link of its own."
UNUSED_INNER_LINK = "The link within a node is not used: with one rank per node nothing is sent there."
BARE_RATE = "A rate that nothing refines is the effective payload rate."
COUNTED_HEADERS = f"Port counters include {PACKET_HEADER_BYTES} header bytes of each packet."
DEFAULT_MTU = f"Counter bytes assume a RoCE MTU of {DEFAULT_ROCE_MTU_BYTES} (Ethernet MTU 1500)."
COUNTED_TCP_HEADERS = (
    f"Port counters include {TCP_HEADERS.within_mtu_bytes} bytes of IP and TCP headers with timestamps and"
    f" {TCP_HEADERS.counted_bytes} of Ethernet in each packet."
)
COUNTED_INFINIBAND_HEADERS = (
    f"Port counters include {INFINIBAND_HEADERS.counted_bytes} header bytes of each packet and not its variant CRC."
)
DEFAULT_ETHERNET_MTU = f"Counter bytes assume an Ethernet MTU of {DEFAULT_ETHERNET_MTU_BYTES}."
DEFAULT_INFINIBAND_MTU = f"Counter bytes assume an InfiniBand MTU of {DEFAULT_INFINIBAND_MTU_BYTES}."
UNCOUNTED_FABRIC = "The fabric shows no packet counters: counter bytes are the sent bytes."
SOCKETS_COPY = (
    "Sockets copy every byte with the processor, which no rate here includes: NCCL over sockets was seen at about"
    " 2 GB/s on a 200 Gb/s link."
)
NO_CACHED_PREFIX = "No part of a prompt comes from a prefix cache."
ONE_PASS = "Each prompt needs the logits of one row: without max_num_batched_tokens it is taken to run in one pass."
PACKED_PASSES = (
    "Passes are filled first come, first served, without a threshold for long prompts and without decoding requests."
)
UNSHARDED_DRAFTS = "Draft layers are not split over the ranks and send nothing."
STORED_WEIGHTS = (
    "Every parameter that a row uses is read once in a pass, as it is stored; what every rank holds whole, by each."
)
WEIGHTS_OF_THE_DATA_TYPE = (
    "The config of the model names no quantisation, so weights are counted in its number type. If a file beside it does"
    " (hf_quant_config.json), they are fewer bytes: reading them takes less time and more fits. An import with that"
    " file, or with the bits of a weight, settles it."
)
MEAN_WEIGHT_BITS = (
    "Every active parameter is read once in a pass, at the mean bits of the stored weights and cut evenly: what every"
    " rank holds whole comes on top."
)
SCALED_WEIGHTS = (
    "A source states fewer bits for the weights than their parts take: each part, what every rank holds whole included,"
    " counts in the ratio of both."
)
RANKED_WEIGHTS = (
    "A source states fewer bits for the weights than their parts take. Layouts are ranked with each part, what every"
    " rank holds whole included, in the ratio of both; the least time of a pass holds for weights that are cut evenly"
    " too."
)
MEAN_SPREAD_WEIGHTS = (
    "Which weights the attention groups share is not known: a rank reads at least what it would if all were spread over"
    " them."
)
ONE_EXCHANGE_PER_STEP = "The gradients of a step are exchanged once, and a step computes as long as on one node."
SHARDED_OPTIMIZER = "Gradients are scattered and updated parameters gathered once per step: an all-reduce's bytes."
SHARDED_PARAMETERS = "Parameters are gathered twice per step and gradients scattered once, at the same bytes a value."
FROZEN_GATHERS = "Frozen parameters are sharded too, so they are gathered whole; only the adapters have gradients."
TRAINED_MODEL = "Every parameter of the model but its MTP layers is trained, whether a token uses it or not."
GRADIENT_BUCKETS = "Calibrated times are of buckets of 25 MiB, PyTorch's default, one after another."
TRAINED_ADAPTERS = "Gradients are those of the adapters alone; frozen parameters have none."
EVEN_COMPUTE = "Arithmetic is split evenly over the ranks, and nothing of the baseline is fixed."
NO_OVERLAP = "Relative changes take it that no transfer runs while the accelerators compute; the TTFTs do not."
FORMULA_BYTES = "The emulated link carried the bytes of the formula: no measured bytes were given."
COUNTED_BYTES = "Measured counter bytes include headers, so over payload rates they count at most too much."
ALIKE_OTHERWISE = "The emulated link differs from the real one in its rate only."

TREES = "Bytes are the mean over the ranks of two binary trees; an inner rank sends up to twice the payload."
ONE_SHOT = "Every rank sends its message to every other rank at once, as custom collectives over RDMA do."
LIBRARY_CHOICE = "Bytes are the most of any algorithm that the library may choose; the lower end is of the least."
ONE_LINK_PER_NODE = (
    "The ranks of a node share one link to the other nodes, all of its adapters together, and each has a link of its"
    " own within it."
)
LIBRARY_MODEL = (
    "Choices follow NCCL's own time model: its constants for Blackwell GPUs, NVLink within a node, 4 channels between"
    " nodes and 16 within one. They are modelled times, not measured ones, and no part of the interval."
)
NOT_COVERED = "The calibration was measured on {}: it says nothing about this collective, and nothing is expected."
NOT_OF_THE_CHOICE = (
    "The calibration was timed with the algorithm that the library chose itself: it says nothing about one that is"
    " asked for in its place, and nothing is expected."
)
CALIBRATED_CHOICE = "Calibrated times are of the algorithm that the library chose, whichever bytes are counted."
CALIBRATED_LINK = (
    "A link slower than the calibrated one adds the difference of the bandwidth terms; a faster one lowers the"
    " lower end alone by it."
)

EMPIRICAL_MEMORY = (
    "Activations, buffers of the collective library and the runtime are empirical figures of other machines and"
    " engines; nothing of them was measured on this one."
)
FILLED_CACHE = "Every request fills its cache to the last token; engines hand it out in blocks."
CACHED_VALUES = "Caches hold 16-bit values."
CACHED_FP8_VALUES = "Caches hold 8-bit values, or what the engine stores where it has a form of its own for FP8."
EVEN_STAGES = "Stages have equally many layers, those left over before the last one; kinds of layers alternate evenly."
EVEN_WEIGHTS = "Weights are cut evenly over all ranks: how this model splits by parts is not known."
STORED_BITS = "Weights whose stored bytes are not known, or are replaced, take {} bits each on average."
NO_DRAFT_LAYERS = "MTP layers are not loaded: no draft tokens were asked for."
MEMORY_CHECK = "Memory is checked at a utilization of 0.9 with 16-bit caches of the prompts alone."
MEMORY_CHECK_WITH_OUTPUT = (
    "Memory is checked at a utilization of 0.9 with 16-bit caches of each prompt and of the {:,} tokens after it."
)
MEMORY_UNKNOWN = "Memory is not checked: what {} keeps in memory is not known."
WHOLE_DRAFT_LAYERS = "MTP layers are not split: every rank of the last stage holds them and their cache whole."

ONE_KIND_OF_SWITCH = (
    "Every switch of an option is of one kind, links between switches are unsplit ports, and nodes spread evenly over"
    " the leaves."
)
BASELINE_WITHOUT_LINK = "The baseline is not used: it does not say over which link it was measured."
TWO_NODES = "Two nodes need no switch: a cable between them does."
NO_RINGS = "Rings of cables without a switch, which three or four nodes can form, are not among the options."
LIST_PRICES = "Prices are list prices as the sources state them, without tax, freight and optics."


SLOWEST_RANK_LINK = "rank_links[{}] is the slowest link and sets the rate of every group."
SLOWEST_RANK_LINK_ANYWHERE = (
    "rank_links[{}] is the slowest link. Its node may be in any stage or attention group: at least, in the one that"
    " sends least, at most, in all of them."
)
STAGE_STATES = (
    "A stage hands two tensors of the hidden size to the next, hidden states and residual; a model without a residual"
    " of its own hands one."
)
STAGE_TIMES = (
    "Times over several stages reach from passes that follow each other without a gap to all stages one after another."
)
SAME_BYTES_IN_SEQUENCE = "A reduce-scatter and an all-gather in place of an all-reduce send the same bytes."
EVEN_GROUPS = (
    "Requests are spread evenly over the attention groups; figures of one rank are those of the fullest group."
)
GATHERED_TOKENS = "Tokens go to every expert rank in the type of the activations, with the logits of the router."
DISPATCHED_TOKENS = (
    "Experts are hit evenly and tokens dispatched in the type of the activations, once for each expert; where experts"
    " of a token share a rank, less is sent: the lower end of a time has all of them share one."
)
SAME_ARITHMETIC = (
    "Arithmetic is no part of any time: where every rank is busy all layouts share it evenly; for one request alone the"
    " stages of a pipeline compute one after another."
)
EVEN_INSTANCES = (
    "Prompts are spread evenly over the instances, each of which takes them one after another and has the rate of"
    " its links for itself, however many send at the same time."
)
PROMPT_IN_EVERY_STAGE = (
    "With many prompts a pipeline has one in every stage: what all nodes take together counts its busiest stage."
)
NO_MEMORY_RATE = "No hardware is given: what a rank reads and holds is no part of times and feasibility."
READS_AND_TRANSFERS = (
    "A pass waits for what it reads and for its transfers in turn, so both times belong together; arithmetic and the"
    " engine come on top, and nothing here says how much."
)
UNCOVERED_COLLECTIVES = (
    "A collective that the calibration does not cover takes its fixed time and the time of its own bytes."
)
CALIBRATION_COVERS_NOTHING = "The calibration covers no collective of this layout, so nothing is expected of it."


def of_links(*links: ResolvedLink) -> tuple[str, ...]:
    """What an answer about `links` assumes (`docs/formulas.md`, Links)."""
    bare = (BARE_RATE,) if RateSource.GIVEN in [link.rate_source for link in links] else ()
    sockets = (SOCKETS_COPY,) if any(map(_is_unmeasured_tcp, links)) else ()
    return (RING, ONE_RANK_PER_LINK, *bare, *sockets)


def of_fabric(layout: ParallelLayout, links: Sequence[ResolvedLink], slowest_index: int | None) -> tuple[str, ...]:
    """What an answer about a layout over `links` assumes (`docs/formulas.md`, Layouts)."""
    of_each = of_links(*links)
    shared = ONE_RANK_PER_LINK if slowest_index is None else OWN_LINKS
    if layout.ranks_per_node > 1:
        shared = ONE_LINK_PER_NODE
    if shared is not ONE_RANK_PER_LINK:
        of_each = tuple([shared if sentence is ONE_RANK_PER_LINK else sentence for sentence in of_each])
    if slowest_index is None:
        return of_each
    is_one_group = layout.pipeline_parallel_size == layout.data_parallel_size == 1
    slowest = SLOWEST_RANK_LINK if is_one_group else SLOWEST_RANK_LINK_ANYWHERE
    return (*of_each, slowest.format(slowest_index))


def of_inner_link(inner_link: Link | None, ranks_per_node: int) -> tuple[str, ...]:
    """Whether a link within nodes is given for nothing (`docs/formulas.md`, Layouts)."""
    return (UNUSED_INNER_LINK,) if inner_link is not None and ranks_per_node == 1 else ()


def of_layout(layout: ParallelLayout) -> tuple[str, ...]:
    """What a layout other than one tensor-parallel group assumes (`docs/formulas.md`, Layouts)."""
    has_groups = layout.data_parallel_size > 1
    is_sparse = layout.expert_parallelism is ExpertParallelism.ALL_TO_ALL
    said = (
        (EVEN_STAGES, layout.pipeline_parallel_size > 1),
        (STAGE_STATES, layout.pipeline_parallel_size > 1),
        (STAGE_TIMES, layout.pipeline_parallel_size > 1),
        (SAME_BYTES_IN_SEQUENCE, layout.sequence_parallel),
        (EVEN_GROUPS, has_groups),
        (GATHERED_TOKENS, has_groups and not is_sparse),
        (DISPATCHED_TOKENS, has_groups and is_sparse),
    )
    return tuple(sentence for sentence, applies in said if applies)


def of_layouts(model: Model) -> tuple[str, ...]:
    """What a comparison of layouts assumes beside each of them (`docs/formulas.md`, Layouts)."""
    exchanges = (EVEN_GROUPS, GATHERED_TOKENS, DISPATCHED_TOKENS) if model.expert_count else ()
    return (EVEN_STAGES, STAGE_STATES, STAGE_TIMES, SAME_ARITHMETIC, *exchanges)


def of_calibrated_layout(calibration: Calibration | None, *, is_covering: bool) -> tuple[str, ...]:
    """What times from a calibration assume (`docs/formulas.md`, Layouts)."""
    if calibration is None:
        return ()
    return (*calibration.assumptions, UNCOVERED_COLLECTIVES) if is_covering else (CALIBRATION_COVERS_NOTHING,)


def of_counters(link: ResolvedLink) -> tuple[str, ...]:
    """What counter bytes over `link` assume (`docs/formulas.md`, Links)."""
    match link.link.transport:
        case LinkTransport.FABRIC:
            return (UNCOUNTED_FABRIC,)
        case LinkTransport.TCP:
            default_mtu = () if link.link.ethernet_mtu_bytes is not None else (DEFAULT_ETHERNET_MTU,)
            return (COUNTED_TCP_HEADERS, *default_mtu)
        case LinkTransport.INFINIBAND:
            default_mtu = () if link.link.roce_mtu_bytes is not None else (DEFAULT_INFINIBAND_MTU,)
            return (COUNTED_INFINIBAND_HEADERS, *default_mtu)
        case _:
            default_mtu = () if link.link.roce_mtu_bytes is not None else (DEFAULT_MTU,)
            return (COUNTED_HEADERS, *default_mtu)


def _is_unmeasured_tcp(link: ResolvedLink) -> bool:
    return link.link.transport is LinkTransport.TCP and link.rate_source is not RateSource.MEASURED


def of_prefill(workload: PrefillWorkload) -> tuple[str, ...]:
    """What the passes of `workload` assume (`docs/formulas.md`, Prefill)."""
    if workload.max_num_batched_tokens is None:
        return (NO_CACHED_PREFIX, ONE_PASS)
    packed = (PACKED_PASSES,) if workload.request_count > 1 else ()
    return (NO_CACHED_PREFIX, *packed)


def of_weights(weight_bytes: float | None, model: Model, layout: ParallelLayout, *, is_mean: bool) -> tuple[str, ...]:
    """What the weight bytes of a pass assume (`docs/formulas.md`, Decode)."""
    if weight_bytes is None:
        return ()
    if not is_mean:
        return (STORED_WEIGHTS, *of_stored_bits(model), *of_weight_format(model))
    if layout.data_parallel_size == 1:
        return (MEAN_WEIGHT_BITS,)
    return (SCALED_WEIGHTS,) if model.parameter_groups else (MEAN_WEIGHT_BITS, MEAN_SPREAD_WEIGHTS)


def is_weight_format_open(model: Model) -> bool:
    """Whether the weights may be stored in fewer bits than they are counted in (`docs/formulas.md`, Parameters)."""
    return model.weight_format_source is WeightFormatSource.DATA_TYPE


def of_weight_format(model: Model) -> tuple[str, ...]:
    """What weight bytes assume that the config does not say (`docs/formulas.md`, Parameters)."""
    return (WEIGHTS_OF_THE_DATA_TYPE,) if is_weight_format_open(model) else ()


def of_stored_bits(model: Model) -> tuple[str, ...]:
    """What parts assume whose stored bytes nobody states (`docs/formulas.md`, Parameters)."""
    is_averaged = any(group.weight_bytes is None for group in model.parameter_groups)
    return (STORED_BITS.format(model.weight_bits_per_parameter),) if is_averaged else ()


def of_compared_weights(model: Model, *, is_scaled: bool) -> tuple[str, ...]:
    """What the weight bytes assume by which layouts are compared (`docs/formulas.md`, Decode)."""
    if not model.parameter_groups:
        return (MEAN_WEIGHT_BITS,)
    scaled = (RANKED_WEIGHTS,) if is_scaled else ()
    return (STORED_WEIGHTS, *scaled, *of_stored_bits(model), *of_weight_format(model))


def of_decode(workload: DecodeWorkload) -> tuple[str, ...]:
    """What the passes of `workload` assume (`docs/formulas.md`, Decode)."""
    return (UNSHARDED_DRAFTS,) if workload.draft_token_count else ()


def of_training(request: TrainingStepRequest) -> tuple[str, ...]:
    """What the exchange of a training step assumes (`docs/formulas.md`, Training)."""
    has_adapters = request.lora_parameters is not None
    said = (
        (ONE_EXCHANGE_PER_STEP, True),
        (SHARDED_OPTIMIZER, request.sharding is TrainingSharding.OPTIMIZER),
        (SHARDED_PARAMETERS, request.sharding is TrainingSharding.FULL),
        (TRAINED_MODEL, request.is_of_model and not has_adapters),
        (TRAINED_ADAPTERS, has_adapters),
        (FROZEN_GATHERS, has_adapters and request.sharding is TrainingSharding.FULL),
    )
    return tuple(sentence for sentence, applies in said if applies)


def of_memory_check(model: Model, *, is_known: bool, output_tokens: int = 0) -> tuple[str, ...]:
    """What a check of memory beside another question assumes (`docs/formulas.md`, Memory)."""
    if not is_known:
        return (MEMORY_UNKNOWN.format(model.model_id),)
    return (MEMORY_CHECK_WITH_OUTPUT.format(output_tokens) if output_tokens else MEMORY_CHECK, EMPIRICAL_MEMORY)


def of_collective(request: CollectiveRequest, *links: ResolvedLink) -> tuple[str, ...]:
    """What the bytes, bounds and choices of one collective assume (`docs/formulas.md`, Collective algorithms)."""
    algorithm = {
        CollectiveAlgorithm.DOUBLE_BINARY_TREE: TREES,
        CollectiveAlgorithm.ONE_SHOT: ONE_SHOT,
        CollectiveAlgorithm.AUTO: LIBRARY_CHOICE,
    }.get(request.algorithm, RING)
    shared = ONE_RANK_PER_LINK if request.ranks_per_node == 1 else ONE_LINK_PER_NODE
    others = [sentence for sentence in of_links(*links) if sentence not in {RING, ONE_RANK_PER_LINK}]
    modelled = (LIBRARY_MODEL,) if request.message_bytes is not None else ()
    unused = of_inner_link(request.inner_link, request.ranks_per_node)
    return (algorithm, shared, *unused, *others, *modelled)


def of_collective_calibration(calibration: Calibration | None, *, is_covered: bool) -> tuple[str, ...]:
    """What expected times assume, or why there are none (`docs/formulas.md`, Collective time)."""
    if calibration is None:
        return ()
    if is_covered:
        return (*calibration.assumptions, CALIBRATED_CHOICE, CALIBRATED_LINK)
    table = calibration.table
    kind = table.kind.name.lower().replace("_", "-")
    return (NOT_COVERED.format(f"{kind} among {table.rank_count} ranks, {table.ranks_per_node} per node"),)


def of_memory(request: MemoryFitRequest, model: Model) -> tuple[str, ...]:
    """What the memory of a rank assumes (`docs/formulas.md`, Memory)."""
    groups = model.parameter_groups
    is_averaged = not groups or any(group.weight_bytes is None for group in groups)
    has_drafts = any(group.part is ModelPart.MTP for group in groups)
    said = (
        (EMPIRICAL_MEMORY, True),
        (FILLED_CACHE, True),
        (CACHED_VALUES if request.cache_value_bytes > 1 else CACHED_FP8_VALUES, True),
        (EVEN_STAGES, request.layout.pipeline_parallel_size > 1),
        (EVEN_WEIGHTS, not groups),
        (STORED_BITS.format(model.weight_bits_per_parameter), is_averaged),
        (WEIGHTS_OF_THE_DATA_TYPE, is_weight_format_open(model)),
        (NO_DRAFT_LAYERS, has_drafts and not request.draft_token_count),
        (WHOLE_DRAFT_LAYERS, has_drafts and request.draft_token_count > 0),
    )
    return tuple(sentence for sentence, applies in said if applies)
