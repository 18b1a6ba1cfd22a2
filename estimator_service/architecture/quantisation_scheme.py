"""Which weight format each module has, whatever tool wrote the config."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from attrs import field, frozen

from estimator_service.architecture.facts import LARGEST_FORMAT_COUNT, WeightFormat
from estimator_service.architecture.module_patterns import ModuleList, module_list


@frozen(kw_only=True)
class Targeted:
    """A format and the modules that have it; no modules: every linear one."""

    weight_format: WeightFormat
    modules: ModuleList | None = None


@frozen(kw_only=True)
class Scheme:
    """Which format a module has: none where `ignored` means it, else that of the first of `targeted` that does.

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
        if self.ignored.holds(layer, names):
            return None
        named = next(
            (e.weight_format for e in self.targeted if e.modules is not None and e.modules.holds(layer, names)), None
        )
        if named is not None:
            return named
        if is_plain or (self.experts_only and not is_expert):
            return None
        if is_expert and self.experts_format is not None:
            return self.experts_format
        return next((e.weight_format for e in self.targeted if e.modules is None), None)


def scheme_of(
    named: Iterable[tuple[WeightFormat, str]], rest: WeightFormat | None, ignored: Iterable[object] = ()
) -> Scheme | None:
    """The scheme in which each module has the format that stands with its name, and every other one `rest`.

    None where there are more formats than a model can have.
    """
    names: dict[WeightFormat, list[str]] = {}
    for weight_format, name in named:
        names.setdefault(weight_format, []).append(name)
    if len(names) >= LARGEST_FORMAT_COUNT:
        return None
    targeted = [Targeted(weight_format=each, modules=module_list(of_it)) for each, of_it in names.items()]
    if rest is not None:
        targeted.append(Targeted(weight_format=rest))
    return Scheme(targeted=tuple(targeted), ignored=module_list(ignored))
