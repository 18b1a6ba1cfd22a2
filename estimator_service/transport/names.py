"""Full names of the services, as the health service knows them, and the domain of their errors."""

from __future__ import annotations

ERROR_DOMAIN = "estimator.linkbound"

ESTIMATOR_SERVICE = "linkbound.estimator.v1.EstimatorService"
CATALOG_SERVICE = "linkbound.estimator.v1.CatalogService"
