"""Sources by format and options, by the table of truth."""

from __future__ import annotations

import pytest

from headwater.events.identity import Unknown, dataset_of_source
from tests.kit.identity_rows import SITE, Row, check, names, options, rows

ROWS = rows("sources")


@pytest.mark.parametrize("row", ROWS, ids=names(ROWS))
def test_source(row: Row) -> None:
    source_format, given, *seen = row.given

    def identify() -> Unknown | str:
        shown = seen[0].split(", ") if seen else None
        found = dataset_of_source(source_format, options(given), SITE, seen=shown)
        assert (found.unknown is None) == bool(found.datasets)
        return found.unknown or " + ".join(f"{dataset.namespace} | {dataset.name}" for dataset in found.datasets)

    check(row, identify)


def test_how_a_source_was_chosen_is_an_attribute() -> None:
    kafka = {"kafka.bootstrap.servers": "b", "subscribePattern": "t.*", "kafka.group.id": "g"}
    found = dataset_of_source("kafka", kafka, SITE, seen=["t1"])
    assert dict(found.attributes) == {"subscribePattern": "t.*", "group.id": "g"}
    files = dataset_of_source("csv", {"path": "/d/*.csv"}, SITE)
    assert dict(files.attributes) == {"pattern": "/d/*.csv"}
    table = dataset_of_source("jdbc", {"url": "jdbc:postgresql://h/db", "dbtable": "t"}, SITE)
    assert dict(table.attributes) == {"assumed": "schema public"}


def test_sinks() -> None:
    kafka = {"kafka.bootstrap.servers": "b", "topic": "t"}
    assert [d.name for d in dataset_of_source("kafka", kafka, SITE, write=True).datasets] == ["t"]
    rows_say = dataset_of_source("kafka", {"kafka.bootstrap.servers": "b"}, SITE, write=True)
    assert rows_say.unknown is not None
    braces = dataset_of_source("parquet", {"path": "/d/{x}"}, SITE, write=True)
    assert [d.name for d in braces.datasets] == ["/d/{x}"]
