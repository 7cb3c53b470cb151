"""What connections are made with."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from importlib import import_module
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import create_engine

from headwater.errors import ConfigurationError, TerminalError, TransientError
from headwater.lineage.bulk.database import DatabaseBulkMeta
from headwater.lineage.sql.errors import StoreUnreachableError
from headwater.lineage.store.engines import engine_for, mysql, postgresql
from headwater.lineage.store.options import StoreOptions
from headwater.lineage.store.urls import parse_url


def mysql_arguments(text: str) -> dict[str, Any]:
    _, settings = mysql.prepare_url(parse_url(text), readonly=False)
    arguments: dict[str, Any] = settings["connect_args"]
    return arguments


def test_a_host_that_does_not_answer_is_given_up() -> None:
    url, _ = postgresql.prepare_url(parse_url("postgresql://h/l"), readonly=False)
    assert int(str(url.query["connect_timeout"])) <= 10
    arguments = mysql_arguments("mysql://h/l")
    assert arguments["connect_timeout"] == arguments["read_timeout"] <= 10
    assert mysql_arguments("jdbc:mysql://h/l?connectTimeout=2000")["read_timeout"] == 2


def test_limits_that_are_given_hold() -> None:
    url, _ = postgresql.prepare_url(parse_url("postgresql://h/l?connect_timeout=3&keepalives_idle=5"), readonly=False)
    assert (url.query["connect_timeout"], url.query["keepalives_idle"]) == ("3", "5")
    with pytest.raises(ConfigurationError, match="read_timeout isn't a whole number of seconds"):
        mysql_arguments("mysql://h/l?read_timeout=long")


@pytest.mark.parametrize(
    ("text", "mode", "names_host"),
    [
        ("jdbc:mysql://h/l?sslMode=REQUIRED", ssl.CERT_NONE, False),
        ("jdbc:mysql://h/l?sslMode=VERIFY_CA", ssl.CERT_REQUIRED, False),
        ("jdbc:mysql://h/l?sslMode=VERIFY_IDENTITY", ssl.CERT_REQUIRED, True),
        ("jdbc:mariadb://h/l?sslMode=verify-full", ssl.CERT_REQUIRED, True),
        ("mysql://h/l?ssl_verify_cert=true&ssl_verify_identity=true", ssl.CERT_REQUIRED, True),
    ],
)
def test_encryption_is_as_strict_as_it_is_asked_for(text: str, mode: ssl.VerifyMode, names_host: bool) -> None:
    context = mysql_arguments(text)["ssl"]
    assert (context.verify_mode, context.check_hostname) == (mode, names_host)


def test_encryption_can_be_left_out_only_in_words() -> None:
    assert mysql_arguments("jdbc:mysql://h/l?useSSL=false")["ssl_disabled"] is True
    assert mysql_arguments("mysql://h/l").keys() == {"connect_timeout", "read_timeout", "write_timeout"}
    with pytest.raises(ConfigurationError, match="ssl_ca"):
        mysql_arguments("mysql://h/l?ssl_ca=/nowhere/ca.pem")


def test_an_engine_has_no_password_and_shows_no_values() -> None:
    engine = engine_for(StoreOptions.at("postgresql://me:5ecret@h/l").target)
    assert engine.url.password is None
    assert engine.hide_parameters


def test_every_trouble_can_be_tried_again_or_not() -> None:
    module = import_module("headwater.lineage.sql.errors")
    kinds = [each for each in vars(module).values() if isinstance(each, type) and each.__module__ == module.__name__]
    assert len(kinds) == 8
    for each in kinds:
        assert issubclass(each, TransientError) is not issubclass(each, TerminalError)


# Reading what a writer keeps of itself, where the database isn't there.


QUESTIONS: list[Callable[[DatabaseBulkMeta], Any]] = [
    lambda store: store.offsets("group"),
    lambda store: list(store.instants(UUID(int=1))),
    lambda store: list(store.dead_letters()),
    lambda store: store.dead_letter("0" * 32),
    lambda store: store.epoch(),
]


@pytest.mark.parametrize("ask", QUESTIONS, ids=["offsets", "instants", "letters", "letter", "epoch"])
def test_who_asks_is_told_to_wait(ask: Callable[[DatabaseBulkMeta], Any]) -> None:
    store = DatabaseBulkMeta(create_engine("postgresql+psycopg://nobody@127.0.0.1:1/nothing"))
    with pytest.raises(StoreUnreachableError, match="is it running"):
        ask(store)
