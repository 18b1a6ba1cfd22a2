"""Why one way to run a model on the nodes at hand is recommended, in words and numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from attrs import frozen

from estimator_service.core.intervals import upper_end
from estimator_service.core.layouts.instances import node_count_of
from estimator_service.core.layouts.words import in_seconds
from linkbound.domain.layout import ParallelLayout, layout_name
from linkbound.domain.layout_recommendation import LayoutOption, LayoutRecommendationRequest


@frozen(kw_only=True)
class Ranked:
    """An option, the time in which all nodes together take a prompt, and what speaks against it."""

    option: LayoutOption
    seconds_per_prompt: float
    is_untried: bool
    """Whether it has fewer ranks than the baseline was measured on, and nothing says that the model fits them."""

    @property
    def is_runnable(self) -> bool:
        """Whether nothing is known to be against it."""
        return self.option.feasible is not False


def reasons(
    request: LayoutRecommendationRequest, options: Sequence[Ranked], beyond: ParallelLayout | None
) -> Iterator[str]:
    """Why the first option is the best, or why there is none (`docs/formulas.md`, Recommendation).

    `beyond`: the smallest instance that fits, if there were nodes for it.
    """
    best = options[0]
    if not best.is_runnable:
        yield from _why_none(request, options, beyond)
        return
    runnable = [one for one in options if one.is_runnable]
    yield from (_line(request, one) for one in runnable)
    if best.option.layout.pipeline_parallel_size > 1:
        yield (
            "No tensor-parallel group that the model can be cut to holds it on these nodes, so its layers are shared"
            " out over pipeline stages; with a prompt in each stage none of them waits."
        )
    if any(_is_larger_group(one.option, best.option) for one in runnable):
        yield (
            "A larger group computes a prompt sooner and sends about as much for it, so the link takes a larger share"
            " of its time; smaller groups side by side share the arithmetic of many prompts without that."
        )
    if request.baseline_ttft_seconds is None and len({one.option.idle_node_count for one in runnable}) > 1:
        yield "Without a baseline nothing is known of the arithmetic: those that leave fewer nodes idle come first."
    if any(one.is_untried for one in options):
        yield (
            f"Sizes below TP{request.baseline_tensor_parallel_size} come behind: the baseline was measured at that one,"
            " and nothing says that the model fits fewer ranks."
        )
    elif all(one.option.memory is None for one in options):
        why = "was not checked"
        if any(one.option.feasible is None for one in options):
            why = "is not known, since the model does not say what it keeps in memory"
        yield f"Whether the model fits {why}; the best size is the smallest one into which it does."


def _is_larger_group(one: LayoutOption, best: LayoutOption) -> bool:
    """Whether both are tensor-parallel groups alone, and this is one of fewer and larger ones."""
    stage_counts = {one.layout.pipeline_parallel_size, best.layout.pipeline_parallel_size}
    return stage_counts == {1} and one.instance_count < best.instance_count


def _line(request: LayoutRecommendationRequest, one: Ranked) -> str:
    option, nodes = one.option, request.workload.node_count
    lost = upper_end(option.extra_ttft_seconds)
    loss = f"at most {in_seconds(lost)} of a prompt" if lost else "nothing"
    if lost and option.extra_ttft_fraction is not None:
        loss = f"at most {100 * upper_end(option.extra_ttft_fraction):.1f} % of the TTFT"
    stay = "stays" if option.idle_node_count == 1 else "stay"
    idle = f"; {option.idle_node_count} of {nodes} nodes {stay} idle" if option.idle_node_count else ""
    every = in_seconds(one.seconds_per_prompt)
    rate = f"all nodes together take a prompt every {every}, counting transfers and arithmetic"
    if request.baseline_ttft_seconds is None:
        rate = f"transfers alone allow all nodes together a prompt every {every}"
        if not one.seconds_per_prompt:
            rate = "its transfers set no limit to the prompts of all nodes together"
    return f"{option.instance_count} x {layout_name(option.layout)}: loses {loss}{idle}; {rate}."


def _why_none(
    request: LayoutRecommendationRequest, options: Sequence[Ranked], beyond: ParallelLayout | None
) -> Iterator[str]:
    yield "No size can be run on these nodes, with pipeline stages neither."
    short = [(one.option.memory.total_bytes, one.option) for one in options if one.option.memory is not None]
    closest = min(short, key=lambda needed: needed[0], default=None)
    cut = [needed for needed in short if len(needed[1].reasons) == 1]
    closest = min(cut, key=lambda needed: needed[0], default=closest)
    if closest is not None:
        yield f"{layout_name(closest[1].layout)} comes closest: {'; '.join(closest[1].reasons)}."
    if beyond is None:
        yield "No number of such nodes holds the model with these prompts in any way that it can be cut."
        return
    count = node_count_of(beyond, request.workload.ranks_per_node)
    nodes = "1 node" if count == 1 else f"{count} nodes"
    yield f"The smallest instance that holds the model is {layout_name(beyond)}, on {nodes}."
