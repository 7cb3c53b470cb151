"""Paths are called by their end, as far as that tells them apart in an answer, and are found by it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy import Connection

from headwater.events.jobs import Committed, Input, Output
from headwater.events.names import DatasetId
from headwater.lineage.questions.jobs import tables
from headwater.lineage.questions.names import AmbiguousNameError, UnknownNameError, find
from headwater.lineage.questions.tables import upstream_tables
from tests.kit.lineage.scripted_producer import ScriptedProducer, at, place, store
from tests.kit.stores import memory_connection

NEW, OLD = "/srv/new/landing/orders", "/srv/old/landing/orders"


@pytest.fixture
def connection() -> Iterator[Connection]:
    producer = ScriptedProducer(1)
    for minute, (target, paths) in enumerate({"daily": (NEW, "/srv/raw/clicks"), "all": (NEW, OLD)}.items()):
        inputs = tuple(Input(dataset=DatasetId(namespace="file://vm", name=path)) for path in paths)
        output = Output(**place(target), snapshot=1, made_from=(0, 1))
        producer.emit(minute, Committed, barrier=minute + 1, inputs=inputs, outputs=(output,))
    with memory_connection() as connection:
        store(connection, producer)
        yield connection


def test_an_answer_shortens_as_far_as_it_stays_unambiguous(connection: Connection) -> None:
    assert {each.source.label for each in upstream_tables(connection, "sales.daily")} == {
        "landing/orders",
        "raw/clicks",
    }
    assert {each.source.label for each in upstream_tables(connection, "sales.all")} == {
        "new/landing/orders",
        "old/landing/orders",
    }


def test_a_path_is_found_by_its_end(connection: Connection) -> None:
    assert find(connection, "new/landing/orders").dataset.place == f"file://vm{NEW}"
    assert find(connection, "raw/clicks").dataset.place == "file://vm/srv/raw/clicks"
    with pytest.raises(AmbiguousNameError, match=rf"file://vm\|{NEW}.*file://vm\|{OLD}"):
        find(connection, "landing/orders")
    with pytest.raises(UnknownNameError, match=r"did you mean file://vm/srv/raw/clicks\?"):
        find(connection, "raw/clikcs")
    with pytest.raises(UnknownNameError):
        find(connection, "aw/clicks")


def test_paths_are_listed_behind_the_tables(connection: Connection) -> None:
    listed = [(each.table, each.place, each.first, each.last) for each in tables(connection, now=at(5))]
    assert listed == [
        ("lake.sales.all", "s3://lake/w/all", at(1), at(1)),
        ("lake.sales.daily", "s3://lake/w/daily", at(0), at(0)),
        ("new/landing/orders", f"file://vm{NEW}", at(0), at(1)),
        ("old/landing/orders", f"file://vm{OLD}", at(1), at(1)),
        ("raw/clicks", "file://vm/srv/raw/clicks", at(0), at(0)),
    ]
