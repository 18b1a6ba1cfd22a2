"""The exchange of data-parallel training: the question and its answer."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from attrs import field, frozen

from linkbound.domain.calibration import CollectiveTable, calibration_violations
from linkbound.domain.collective import LARGEST_MESSAGE_BYTES, LARGEST_RANK_COUNT
from linkbound.domain.errors import Violation
from linkbound.domain.estimate import Estimate
from linkbound.domain.link import Link, ResolvedLink
from linkbound.domain.names import OPTIONAL_CATALOG_NAME
from linkbound.domain.rules import Checked, CrossChecked, instance, member, one_of, optional, whole
from linkbound.domain.workload import INLINE_CONFIG, POSITIVE_SECONDS

LARGEST_TRAINED_PARAMETERS = 10**15
DEFAULT_VALUE_BYTES = 2


class TrainingSharding(Enum):
    """How the state of training is spread. UNSPECIFIED: every rank holds all of it (DDP)."""

    UNSPECIFIED = "TRAINING_SHARDING_UNSPECIFIED"
    OPTIMIZER = "TRAINING_SHARDING_OPTIMIZER"
    FULL = "TRAINING_SHARDING_FULL"
    UNKNOWN = "TRAINING_SHARDING_UNKNOWN"


@frozen(kw_only=True)
class TrainingStepRequest(Checked, CrossChecked):
    """What does one step take on `rank_count` nodes, if one node alone takes `compute_step_seconds`?

    What is trained is given as `gradient_bytes`, or as a `model` whose parameters, or whose `lora_parameters` alone,
    are trained with `value_bytes` each on the network; `model_config_json`, the contents of a Hugging Face
    `config.json`, may take the place of `model`. `calibration` or `collective_table` say how long collectives take on
    this system.
    """

    gradient_bytes: int | None = field(default=None, metadata=optional(whole(1, LARGEST_MESSAGE_BYTES)))
    rank_count: int = field(metadata=whole(1, LARGEST_RANK_COUNT))
    link: Link = field(metadata=instance(Link))
    compute_step_seconds: float = field(metadata=POSITIVE_SECONDS)
    model: str = field(default="", metadata=OPTIONAL_CATALOG_NAME)
    lora_parameters: int | None = field(default=None, metadata=optional(whole(1, LARGEST_TRAINED_PARAMETERS)))
    sharding: TrainingSharding = field(
        default=TrainingSharding.UNSPECIFIED, metadata=member(TrainingSharding, TrainingSharding.UNKNOWN)
    )
    value_bytes: int = field(default=DEFAULT_VALUE_BYTES, metadata=one_of(1, 2, 4))
    calibration: str = field(default="", metadata=OPTIONAL_CATALOG_NAME)
    collective_table: CollectiveTable | None = field(default=None, metadata=optional(instance(CollectiveTable)))
    model_config_json: str = field(default="", metadata=INLINE_CONFIG)

    @property
    def is_of_model(self) -> bool:
        """Whether a model is trained, named or brought along."""
        return bool(self.model or self.model_config_json)

    def missing_violations(self) -> Iterable[Violation]:
        """What is trained is said."""
        if self.gradient_bytes is None and not self.is_of_model:
            yield Violation("gradient_bytes", "is missing, and so is model")
        if self.model and self.model_config_json:
            yield Violation("model_config_json", "is given beside a model")

    def cross_violations(self) -> Iterable[Violation]:
        """What is trained is said once, and so is how long collectives take; adapters belong to a model."""
        if self.gradient_bytes is not None and self.is_of_model:
            yield Violation("gradient_bytes", "is given beside a model")
        if self.lora_parameters is not None and not self.is_of_model:
            yield Violation("lora_parameters", "needs a model")
        yield from calibration_violations(self.calibration, self.collective_table)


@frozen(kw_only=True)
class TrainingStepEstimate:
    """Bytes that one rank sends per step, the time of the exchange and the step time that follows.

    `gradient_bytes` are those of everything that is trained.
    """

    sent_bytes_per_rank: int
    sync_seconds: Estimate
    step_seconds: Estimate
    scaling_efficiency_fraction: Estimate
    link: ResolvedLink
    compute_step_seconds: float
    gradient_bytes: int
    assumptions: tuple[str, ...] = ()
    estimator_version: str
