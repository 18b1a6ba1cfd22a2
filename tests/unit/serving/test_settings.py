"""Settings of a server: rules, environment, and what is shown of them."""

from pathlib import Path

import attrs
import pytest

from estimator_service import settings as estimator_settings
from ingest_service import settings as ingest_settings
from ingest_service.settings import BATCH_ENVELOPE_BYTES, STORE_VARIABLES, StoreSettings
from linkbound.domain.errors import InvalidArgumentError
from linkbound.ingest.v1.ingest_service_pb2 import SampleBatch, StreamSamplesRequest
from serving.settings import LogFormat, LogLevel, ServerSettings, is_loopback, read_settings

CERTIFICATE, KEY = Path("certificate.pem"), Path("key.pem")
STORE = Path("linkbound.duckdb")


def fields_of(error: InvalidArgumentError) -> list[str]:
    return [violation.field for violation in error.field_violations]


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "localhost"])
def test_loopback_needs_no_tls(host: str) -> None:
    assert ServerSettings(host=host).uses_tls is False


@pytest.mark.parametrize(
    "host", ["0.0.0.0", "::", "10.0.0.1", "example.org", "127.0.0.1.example.org", "localhost.example"]
)
def test_other_machines_need_tls_or_an_explicit_setting(host: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        ServerSettings(host=host)
    assert fields_of(caught.value) == ["host"]
    assert "allow_plaintext" in caught.value.message
    assert ServerSettings(host=host, allow_plaintext=True).host == host
    assert ServerSettings(host=host, tls_certificate_file=CERTIFICATE, tls_key_file=KEY).uses_tls


def test_is_loopback_does_not_guess() -> None:
    assert not is_loopback("")
    assert not is_loopback("local")


def test_certificate_and_key_go_together() -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        ServerSettings(tls_certificate_file=CERTIFICATE)
    assert fields_of(caught.value) == ["tls_key_file"]
    with pytest.raises(InvalidArgumentError) as caught:
        ServerSettings(tls_key_file=KEY)
    assert fields_of(caught.value) == ["tls_certificate_file"]


def test_a_client_ca_needs_tls() -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        ServerSettings(tls_client_ca_file=CERTIFICATE)
    assert fields_of(caught.value) == ["tls_client_ca_file"]


def test_all_violations_at_once() -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        ServerSettings(host="", port=65_536, max_message_bytes=-1, keepalive_seconds=0.0, grace_seconds=float("nan"))
    assert fields_of(caught.value) == ["host", "port", "max_message_bytes", "keepalive_seconds", "grace_seconds"]


@pytest.mark.parametrize(
    ("host", "address"), [("127.0.0.1", "127.0.0.1:7"), ("::1", "[::1]:7"), ("localhost", "localhost:7")]
)
def test_addresses(host: str, address: str) -> None:
    assert ServerSettings(host=host, port=7).address == address


def test_every_field_has_one_variable() -> None:
    # Whether a port is shared is for whoever starts the processes to say.
    fields = [attribute.name for attribute in attrs.fields(ServerSettings) if attribute.name != "share_port"]
    for variables in (estimator_settings.SERVER_VARIABLES, ingest_settings.SERVER_VARIABLES):
        assert sorted(variable.field for variable in variables) == sorted(fields)
        assert len({variable.name for variable in variables}) == len(variables)


def test_the_servers_have_ports_of_their_own() -> None:
    assert estimator_settings.server_settings_from_environment({}).port == 50_051
    assert ingest_settings.settings_from_environment({}, STORE).server.port == 50_052
    environment = {"LINKBOUND_ESTIMATOR_PORT": "1", "LINKBOUND_INGEST_PORT": "2"}
    assert estimator_settings.server_settings_from_environment(environment).port == 1
    assert ingest_settings.settings_from_environment(environment, STORE).server.port == 2


def test_the_environment_says_how_others_read() -> None:
    assert ingest_settings.settings_from_environment({}, STORE).reading == ingest_settings.ReadingSettings()
    environment = {
        "LINKBOUND_INGEST_SQL": "off",
        "LINKBOUND_INGEST_SQL_TIME_LIMIT_SECONDS": "2.5",
        "LINKBOUND_INGEST_SQL_TOKEN_FILE": "analysts",
        "LINKBOUND_INGEST_SNAPSHOT_INTERVAL_SECONDS": "0",
    }
    assert ingest_settings.settings_from_environment(environment, STORE).reading == ingest_settings.ReadingSettings(
        is_sql_on=False,
        sql_time_limit_seconds=2.5,
        sql_token_file=Path("analysts"),
        snapshot_interval_seconds=0.0,
    )
    with pytest.raises(InvalidArgumentError, match="LINKBOUND_INGEST_SQL: 'perhaps'"):
        ingest_settings.settings_from_environment({"LINKBOUND_INGEST_SQL": "perhaps"}, STORE)


def test_the_environment_sets_every_field() -> None:
    settings = estimator_settings.server_settings_from_environment(
        {
            "LINKBOUND_ESTIMATOR_PORT": "7",
            "LINKBOUND_SERVER_HOST": " 0.0.0.0 ",
            "LINKBOUND_SERVER_ALLOW_PLAINTEXT": "yes",
            "LINKBOUND_SERVER_TLS_CERTIFICATE_FILE": "certificate.pem",
            "LINKBOUND_SERVER_TLS_KEY_FILE": "key.pem",
            "LINKBOUND_SERVER_TLS_CLIENT_CA_FILE": "ca.pem",
            "LINKBOUND_SERVER_TOKEN_FILE": "tokens",
            "LINKBOUND_SERVER_REFLECTION": "On",
            "LINKBOUND_SERVER_MAX_MESSAGE_BYTES": "2048",
            "LINKBOUND_SERVER_KEEPALIVE_SECONDS": "5.5",
            "LINKBOUND_SERVER_KEEPALIVE_TIMEOUT_SECONDS": "6",
            "LINKBOUND_SERVER_GRACE_SECONDS": "0",
            "LINKBOUND_SERVER_LOG_FORMAT": "JSON",
            "LINKBOUND_SERVER_LOG_LEVEL": "debug",
        }
    )
    assert settings == ServerSettings(
        host="0.0.0.0",
        port=7,
        allow_plaintext=True,
        tls_certificate_file=CERTIFICATE,
        tls_key_file=KEY,
        tls_client_ca_file=Path("ca.pem"),
        token_file=Path("tokens"),
        reflection=True,
        max_message_bytes=2048,
        keepalive_seconds=5.5,
        keepalive_timeout_seconds=6.0,
        grace_seconds=0.0,
        log_format=LogFormat.JSON,
        log_level=LogLevel.DEBUG,
    )


def test_unset_and_empty_variables_leave_the_default() -> None:
    environment = {"LINKBOUND_SERVER_HOST": "", "LINKBOUND_SERVER_GRACE_SECONDS": "  ", "OTHER": "x"}
    settings = estimator_settings.server_settings_from_environment(environment)
    assert settings == estimator_settings.DEFAULT_SERVER_SETTINGS


def test_all_violations_of_the_environment_are_named_by_variable() -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        read_settings(
            estimator_settings.SERVER_VARIABLES,
            {
                "LINKBOUND_ESTIMATOR_PORT": "70000",
                "LINKBOUND_SERVER_REFLECTION": "perhaps",
                "LINKBOUND_SERVER_MAX_MESSAGE_BYTES": "16M",
                "LINKBOUND_SERVER_GRACE_SECONDS": "soon",
                "LINKBOUND_SERVER_LOG_LEVEL": "loud",
                "LINKBOUND_SERVER_HOST": "0.0.0.0",
            },
            ServerSettings(),
        )
    assert sorted(fields_of(caught.value)) == [
        "LINKBOUND_ESTIMATOR_PORT",
        "LINKBOUND_SERVER_GRACE_SECONDS",
        "LINKBOUND_SERVER_LOG_LEVEL",
        "LINKBOUND_SERVER_MAX_MESSAGE_BYTES",
        "LINKBOUND_SERVER_REFLECTION",
    ]
    assert "'perhaps' is not one of" in caught.value.message


def test_a_rule_between_fields_is_named_by_variable_too() -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        estimator_settings.server_settings_from_environment({"LINKBOUND_SERVER_HOST": "0.0.0.0"})
    assert fields_of(caught.value) == ["LINKBOUND_SERVER_HOST"]


def test_every_variable_is_described_with_its_default() -> None:
    text = estimator_settings.describe_server_settings()
    lines = text.splitlines()
    assert [line.split(":")[0] for line in lines] == [v.name for v in estimator_settings.SERVER_VARIABLES]
    assert lines[0] == "LINKBOUND_ESTIMATOR_PORT: Port to listen on; 0 is any free one. Default 50051."
    assert "LINKBOUND_SERVER_REFLECTION: Let tools ask for the protos. Default false." in lines
    assert "LINKBOUND_SERVER_LOG_FORMAT: auto, json or console. Default auto." in lines
    assert "Default 50052." in ingest_settings.describe_server_settings()


# ---------------------------------------------------------------- the ingest service's store


def test_every_field_of_the_store_but_its_path_has_one_variable() -> None:
    fields = [attribute.name for attribute in attrs.fields(StoreSettings) if attribute.name != "path"]
    assert sorted(variable.field for variable in STORE_VARIABLES) == sorted(fields)
    assert len({variable.name for variable in (*STORE_VARIABLES, *ingest_settings.SERVER_VARIABLES)}) == len(
        STORE_VARIABLES
    ) + len(ingest_settings.SERVER_VARIABLES)


def test_the_environment_sets_every_field_of_the_store() -> None:
    environment = {
        "LINKBOUND_STORE_MEMORY_LIMIT_BYTES": str(2**28),
        "LINKBOUND_STORE_THREAD_COUNT": "3",
        "LINKBOUND_STORE_QUEUE_ROW_LIMIT": "4",
        "LINKBOUND_STORE_QUEUE_BYTE_LIMIT": "5",
        "LINKBOUND_STORE_MAX_IN_FLIGHT_BATCHES": "6",
        "LINKBOUND_STORE_MAX_BATCH_BYTES": "7000",
    }
    assert ingest_settings.settings_from_environment(environment, STORE).store == StoreSettings(
        path=STORE,
        memory_limit_bytes=2**28,
        thread_count=3,
        queue_row_limit=4,
        queue_byte_limit=5,
        max_in_flight_batches=6,
        max_batch_bytes=7000,
    )
    assert ingest_settings.settings_from_environment({}, STORE).store == StoreSettings(path=STORE)


def test_violations_of_server_and_store_are_named_together() -> None:
    environment = {
        "LINKBOUND_INGEST_PORT": "70000",
        "LINKBOUND_STORE_THREAD_COUNT": "many",
        "LINKBOUND_STORE_QUEUE_ROW_LIMIT": "0",
    }
    with pytest.raises(InvalidArgumentError) as caught:
        ingest_settings.settings_from_environment(environment, STORE)
    assert fields_of(caught.value) == [
        "LINKBOUND_INGEST_PORT",
        "LINKBOUND_STORE_THREAD_COUNT",
        "LINKBOUND_STORE_QUEUE_ROW_LIMIT",
    ]


def test_a_message_holds_the_largest_batch() -> None:
    largest_bytes = 5000
    needed_bytes = largest_bytes + BATCH_ENVELOPE_BYTES
    environment = {"LINKBOUND_STORE_MAX_BATCH_BYTES": str(largest_bytes)}
    enough = {**environment, "LINKBOUND_SERVER_MAX_MESSAGE_BYTES": str(needed_bytes)}
    assert ingest_settings.settings_from_environment(enough, STORE).server.max_message_bytes == needed_bytes
    too_little = {**environment, "LINKBOUND_SERVER_MAX_MESSAGE_BYTES": str(needed_bytes - 1)}
    with pytest.raises(InvalidArgumentError) as caught:
        ingest_settings.settings_from_environment(too_little, STORE)
    assert fields_of(caught.value) == ["LINKBOUND_SERVER_MAX_MESSAGE_BYTES"]


@pytest.mark.parametrize("value_count", [1, 1000, 2**20])
def test_a_batch_takes_no_more_within_its_message_than_is_allowed_for(value_count: int) -> None:
    batch = SampleBatch(sequence_number=1)
    batch.column_set.columns.add(value_deltas=[1] * value_count)
    assert StreamSamplesRequest(batch=batch).ByteSize() - batch.ByteSize() <= BATCH_ENVELOPE_BYTES


def test_the_variables_of_the_store_are_described_with_their_defaults() -> None:
    lines = ingest_settings.describe_store_settings().splitlines()
    assert [line.split(":")[0] for line in lines] == [v.name for v in STORE_VARIABLES]
    assert "LINKBOUND_STORE_MAX_BATCH_BYTES: Largest batch of a sample stream. Default 1048576." in lines
