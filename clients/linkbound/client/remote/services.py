"""Full names of the services that a client waits for, as the health service knows them."""

from __future__ import annotations

ESTIMATOR_SERVICES = ("linkbound.estimator.v1.EstimatorService", "linkbound.estimator.v1.CatalogService")
# The query service is left out: an installation can switch it off.
INGEST_SERVICES = ("linkbound.ingest.v1.RunService", "linkbound.ingest.v1.IngestService")
