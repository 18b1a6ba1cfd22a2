# The estimator service. Build from the root of the repository:
#   docker build -f docker/estimator.Dockerfile -t linkbound-estimator .
# It refuses to serve other machines in the clear: give LINKBOUND_SERVER_TLS_* files, or, behind something that
# encrypts, LINKBOUND_SERVER_ALLOW_PLAINTEXT=true as the compose file does.
# With TLS the health check needs to know the certificate too: LINKBOUND_TLS_CA_FILE, what it descends from, and
# LINKBOUND_TLS_SERVER_NAME, a name that it holds for, since the check asks 127.0.0.1. With
# LINKBOUND_SERVER_TLS_CLIENT_CA_FILE also LINKBOUND_TLS_CLIENT_CERTIFICATE_FILE and LINKBOUND_TLS_CLIENT_KEY_FILE.
# It needs no token.

FROM python:3.12-slim AS build
WORKDIR /build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1
# The environment that is shipped: the runtime packages, each held to its hash.
COPY docker/requirements.lock docker/requirements.lock
RUN python -m venv /opt/linkbound \
    && /opt/linkbound/bin/pip install --no-cache-dir --require-hashes -r docker/requirements.lock
# The build backend, from the project's own lock; it stays in this stage.
COPY requirements.lock requirements.lock
RUN pip install --no-cache-dir --require-hashes -r requirements.lock
COPY pyproject.toml README.md LICENSE ./
COPY clients/ clients/
COPY estimator_service/ estimator_service/
COPY ingest_service/ ingest_service/
COPY serving/ serving/
RUN python -m hatchling build -t wheel \
    && /opt/linkbound/bin/pip install --no-cache-dir --no-deps dist/*.whl

FROM python:3.12-slim
RUN useradd --system --uid 10001 --no-create-home linkbound \
    && install --directory --owner=linkbound --group=linkbound /var/lib/linkbound
COPY --from=build /opt/linkbound /opt/linkbound
ENV PATH=/opt/linkbound/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    LINKBOUND_DATA=/var/lib/linkbound
# The user linkbound, by number: an orchestrator can check that it is not root.
USER 10001
VOLUME /var/lib/linkbound
EXPOSE 50051
HEALTHCHECK --interval=10s --timeout=5s --start-period=10s \
    CMD ["linkbound", "health", "--target", "127.0.0.1:50051"]
ENTRYPOINT ["linkbound", "serve", "--only", "estimator", "--host", "0.0.0.0", "--estimator-port", "50051"]
