"""The estimator as an object: requests in, answers out, both domain types. The servicers and `local:` call it alike."""

from __future__ import annotations

from estimator_service.catalog.directory import SHIPPED_DIRECTORY, Catalog
from estimator_service.catalog.pages import page_of
from estimator_service.core import decode, link_comparison, prefill, single_collective, tp_projection, training
from linkbound.domain.catalog import Hardware, HardwareRequest, Model, ModelRequest
from linkbound.domain.collective import CollectiveEstimate, CollectiveRequest
from linkbound.domain.decode import DecodeEstimate, DecodeRequest
from linkbound.domain.link_comparison import LinkComparison, LinkComparisonRequest
from linkbound.domain.names import HARDWARE, MODELS
from linkbound.domain.paging import Page, PageRequest
from linkbound.domain.prefill import PrefillEstimate, PrefillRequest
from linkbound.domain.tp_projection import TpProjection, TpProjectionRequest
from linkbound.domain.training import TrainingStepEstimate, TrainingStepRequest


class Estimator:
    """Answers every question of the estimator from `catalog` alone. Safe to share between threads.

    Every method raises InvalidArgumentError with all violations of a request, and NotFoundError with near names for a
    model or hardware that the catalogue does not hold. Formulas, units and sources: `docs/formulas.md`.
    """

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    def estimate_prefill(self, request: PrefillRequest) -> PrefillEstimate:
        """Bytes on the wire and the time bounds of prompts."""
        return prefill.estimate_prefill(request, self._catalog.models.get(request.workload.model))

    def estimate_decode(self, request: DecodeRequest) -> DecodeEstimate:
        """Bytes, pass floor and traffic while tokens are generated."""
        model = self._catalog.models.get(request.workload.model)
        hardware_id = request.workload.hardware
        return decode.estimate_decode(request, model, self._catalog.hardware.get(hardware_id) if hardware_id else None)

    def estimate_collective(self, request: CollectiveRequest) -> CollectiveEstimate:
        """Bytes, time and bandwidth bounds of one collective."""
        return single_collective.estimate_collective(request)

    def estimate_training_step(self, request: TrainingStepRequest) -> TrainingStepEstimate:
        """The gradient exchange of data-parallel training and the step that follows."""
        return training.estimate_training_step(request)

    def compare_links(self, request: LinkComparisonRequest) -> LinkComparison:
        """One workload over two links."""
        return link_comparison.compare_links(request, self._catalog.models.get(request.workload.model))

    def project_tp_sizes(self, request: TpProjectionRequest) -> TpProjection:
        """One prompt workload over several tensor-parallel sizes."""
        return tp_projection.project_tp_sizes(request, self._catalog.models.get(request.workload.model))

    def list_models(self, request: PageRequest) -> Page[Model]:
        """One page of the models, in the order of their ids."""
        page = page_of(MODELS, self._catalog.models.ids, request)
        return Page(entries=tuple(map(self._catalog.models.get, page.ids)), next_page_token=page.next_page_token)

    def get_model(self, model_id: str) -> Model:
        """One model. A malformed id is a violation."""
        return self._catalog.models.get(ModelRequest(model=model_id).model)

    def list_hardware(self, request: PageRequest) -> Page[Hardware]:
        """One page of the hardware, in the order of its ids."""
        page = page_of(HARDWARE, self._catalog.hardware.ids, request)
        return Page(entries=tuple(map(self._catalog.hardware.get, page.ids)), next_page_token=page.next_page_token)

    def get_hardware(self, hardware_id: str) -> Hardware:
        """One kind of hardware. A malformed id is a violation."""
        return self._catalog.hardware.get(HardwareRequest(hardware=hardware_id).hardware)


def default_estimator() -> Estimator:
    """An estimator over the catalogue that comes with the package."""
    return Estimator(Catalog(SHIPPED_DIRECTORY))
