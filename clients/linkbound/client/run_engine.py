"""Which engine a run measured: what is given, and where nothing is, what the run says itself. Pure functions.

A run says it in its settings, as far as these can be read: `model`, a name of the catalogue, or `model_config_json`;
`link` and `inner_link`, a rate or a name of a link; and the fields of a layout and of a scheduler by their names, such
as `tensor_parallel_size` and `max_num_batched_tokens`. `engine` is a word for people, and chooses no rules. Where no
setting tells the link, it is one of the rate that the frozen prediction assumed for first tokens, if that is one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from attrs import AttrsInstance, evolve, fields, frozen

from linkbound.client.link_reader import LinkOrRate, LinkReader
from linkbound.client.names import model_id
from linkbound.domain.catalog import ModelRequest
from linkbound.domain.engine import BurstTable, SchedulerSettings
from linkbound.domain.errors import InvalidArgumentError, Violation
from linkbound.domain.layout import ParallelLayout
from linkbound.domain.link import BITS_PER_BYTE, Link
from linkbound.domain.link_presets import parse_link
from linkbound.domain.metric import Metric
from linkbound.domain.rules import shown
from linkbound.domain.run import Run
from linkbound.importers.tables import TableError, from_table

FIELD = "run.settings"
"""What violations of a run's own words are named by."""

_TTFT_METRICS = {
    Metric.TTFT_SECONDS,
    Metric.LAST_TTFT_SECONDS,
    Metric.EXTRA_TTFT_SECONDS,
    Metric.EXTRA_LAST_TTFT_SECONDS,
}
_FOR_PEOPLE = {"engine"}
"""Settings that share the name of a field and do not mean it."""
_TRUTHS = {"true": True, "false": False}

PartT = TypeVar("PartT", bound=AttrsInstance)


@frozen(kw_only=True)
class GivenEngine:
    """What a caller says of an engine; what is empty or None is left to the run."""

    model: str = ""
    model_config_json: str = ""
    layout: ParallelLayout | None = None
    link: LinkOrRate | None = None
    inner_link: LinkOrRate | None = None
    scheduler: SchedulerSettings | None = None
    bursts: BurstTable | None = None

    def names(self) -> tuple[str, ...]:
        """The parts that are given."""
        parts = {
            "model": self.model or self.model_config_json or None,
            "layout": self.layout,
            "link": self.link,
            "inner link": self.inner_link,
            "scheduler": self.scheduler,
            "bursts": self.bursts,
        }
        return tuple(name for name, part in parts.items() if part is not None)


@frozen(kw_only=True)
class RunEngine:
    """The engine that a run measured."""

    model: str
    model_config_json: str
    layout: ParallelLayout
    link: Link
    inner_link: Link | None
    scheduler: SchedulerSettings
    bursts: BurstTable | None


def engine_of_run(run: Run, given: GivenEngine) -> RunEngine:
    """The engine of a run. Raises InvalidArgumentError with everything that neither says, and how to say it."""
    settings = {setting.key: setting.value for setting in run.settings}
    violations: list[Violation] = []
    given = _with_model(given, settings)
    if not given.model and not given.model_config_json:
        violations.append(_missing("model", "an id of the catalogue or the contents of a config", "model", settings))
    layout, scheduler = given.layout, given.scheduler
    if layout is None:
        layout = _part("layout", ParallelLayout, settings, "tensor_parallel_size", violations)
    if scheduler is None:
        scheduler = _part("scheduler", SchedulerSettings, settings, "max_num_batched_tokens", violations)
    links = LinkReader()
    link = links.read_optional(given.link, "link")
    inner_link = links.read_optional(given.inner_link, "inner_link")
    if link is None:
        link = _told_link(settings, "link") or _assumed_link(run)
    if link is None:
        violations.append(_missing("link", "a Link, a rate such as '200g' or the name of a link", "link", settings))

    def make() -> RunEngine:
        if violations or layout is None or scheduler is None or link is None:
            raise InvalidArgumentError(violations)
        return RunEngine(
            model=given.model,
            model_config_json=given.model_config_json,
            layout=layout,
            link=link,
            inner_link=inner_link or _told_link(settings, "inner_link"),
            scheduler=scheduler,
            bursts=given.bursts,
        )

    return links.build(make)


def _with_model(given: GivenEngine, settings: Mapping[str, str]) -> GivenEngine:
    """The same with the model that the run tells, where none is given."""
    if given.model or given.model_config_json:
        return evolve(given, model=model_id(given.model))
    if settings.get("model_config_json"):
        return evolve(given, model_config_json=settings["model_config_json"])
    try:
        return evolve(given, model=ModelRequest(model=model_id(settings.get("model", ""))).model)
    except InvalidArgumentError:
        return given


def _told_link(settings: Mapping[str, str], key: str) -> Link | None:
    try:
        return parse_link(settings.get(key, ""))
    except InvalidArgumentError:
        return None


def _missing(field: str, what: str, key: str, settings: Mapping[str, str]) -> Violation:
    told = settings.get(key)
    beside = f" (the run has {shown(told)}, which is none)" if told else ""
    return Violation(field, f"is missing: give {what}, or create runs with the setting {key!r}{beside}")


def _part(
    name: str, kind: type[PartT], settings: Mapping[str, str], needed: str, violations: list[Violation]
) -> PartT | None:
    """The settings with the names of the fields of a `kind` as one; None where `needed` or a readable value is not."""
    if needed not in settings:
        violations.append(_missing(name, f"a {kind.__name__}", needed, settings))
        return None
    names = {attribute.name for attribute in fields(kind)} - _FOR_PEOPLE
    try:
        return from_table(kind, {key: _plain(value) for key, value in settings.items() if key in names})
    except TableError as error:
        violations.append(Violation(FIELD, f"{error}; give a {kind.__name__} as {name!r}"))
        return None


def _plain(value: str) -> object:
    """The whole number, number or truth value that a setting spells, or its text."""
    for read in (int, float):
        try:
            return read(value)
        except ValueError:
            continue
    return _TRUTHS.get(value.lower(), value)


def _assumed_link(run: Run) -> Link | None:
    """A link of the rate that the frozen prediction assumed; None where it assumed none, or more than one."""
    rates = {
        value.transfer.assumed_bytes_per_second
        for value in (() if run.prediction is None else run.prediction.values)
        if value.metric in _TTFT_METRICS and value.transfer is not None
    }
    if len(rates) != 1:
        return None
    return Link(line_rate_bits_per_second=round(rates.pop() * BITS_PER_BYTE))
