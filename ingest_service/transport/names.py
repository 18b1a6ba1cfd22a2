"""Names that the ingest service goes by on the wire."""

from __future__ import annotations

ERROR_DOMAIN = "ingest.linkbound"
"""Of every `ErrorInfo`."""

RUN_SERVICE = "linkbound.ingest.v1.RunService"
INGEST_SERVICE = "linkbound.ingest.v1.IngestService"
QUERY_SERVICE = "linkbound.ingest.v1.QueryService"
