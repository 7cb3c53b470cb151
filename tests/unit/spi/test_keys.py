"""What stands beside an event's bytes: the key that keeps its order, and headers that tell what it is."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.events.catalog import CatalogContext
from headwater.events.health import Heartbeat
from headwater.events.keys import LONGEST_KEY, headers_of, key_of
from headwater.events.names import JobName
from headwater.testing.examples import EXAMPLES

BY_KIND = {event.kind: event for event in EXAMPLES}
DATASET = b"s3://acme-lake-prod/warehouse/sales/"
CATALOG = b"iceberg:s3://acme-lake-prod/warehouse"


@pytest.mark.parametrize(
    ("kind", "key"),
    [
        ("CreateTable", DATASET + b"orders"),
        ("Truncate", DATASET + b"daily"),
        ("DropView", DATASET + b"today"),
        ("CreateDatabase", CATALOG + b"/sales"),
        ("JobLineage", b"default/orders_etl.lake.sales.daily"),
        ("JobStarted", b"default/orders_etl"),
        ("Gap", b"default/orders_etl.lake.sales.daily"),
        ("LineageDeleted", b"default/orders_etl.lake.sales.daily"),
        ("CatalogOptionsDeclared", CATALOG),
        ("DatasetsUnified", DATASET + b"orders"),
    ],
)
def test_the_key_is_what_the_event_is_about(kind: str, key: bytes) -> None:
    assert key_of(BY_KIND[kind]) == key


@pytest.mark.parametrize(
    ("kind", "without", "key"),
    [
        ("CreateTable", {"dataset": None}, CATALOG + b"/lake.sales.orders"),
        ("CreateDatabase", {"context": CatalogContext(name="lake", class_name="C")}, b"lake/sales"),
        ("Heartbeat", {"job": None}, b"01890a5d-ac96-774b-bcce-b302099a8057"),
        ("LineageDeleted", {"of_job": None}, b"01890a5d-ac96-774b-bcce-b302099a8057"),
    ],
)
def test_where_that_is_not_known_there_is_a_key_all_the_same(kind: str, without: dict[str, Any], key: bytes) -> None:
    assert key_of(BY_KIND[kind].model_copy(update=without)) == key


def named(name: str) -> bytes:
    return key_of(Heartbeat(job=JobName.model_construct(namespace="n", name=name)))


@given(name=st.text(min_size=1), repeated=st.integers(1, 400), other=st.text(min_size=1))
def test_keys_are_short_texts_that_differ_where_names_differ(name: str, repeated: int, other: str) -> None:
    key = named(name * repeated)
    assert len(key) <= LONGEST_KEY
    assert key.decode()
    assert key == named(name * repeated)
    assert key != named(name * repeated + other)


@pytest.mark.parametrize("before", ["", "x"])
def test_a_long_key_keeps_its_beginning_in_whole_characters_and_ends_in_a_digest(before: str) -> None:
    key = named(before + "ü" * LONGEST_KEY)
    assert key.decode().startswith(f"n/{before}üüü")
    assert key != named(before + "ü" * LONGEST_KEY + "x")


def test_half_a_character_makes_no_key_that_cannot_be_read() -> None:
    assert named("a\ud800").decode() == "n/a\\ud800"


def test_headers_tell_what_the_bytes_are() -> None:
    event = BY_KIND["Committed"].model_copy(update={"producer": UUID(int=7), "sequence": 12})
    assert dict(headers_of(event, b"\x01\xff")) == {
        "kind": b"Committed",
        "family": b"JOB",
        "producer": b"00000000-0000-0000-0000-000000000007",
        "sequence": b"12",
        "schema": b"01ff",
    }
