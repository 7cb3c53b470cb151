"""Answers to questions about stories in DuckDB, by which a lake store is asked."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest
from sqlalchemy import Connection
from sqlalchemy.schema import CreateTable

from headwater.errors import ConfigurationError
from headwater.lineage.lake import LakeAddress
from headwater.lineage.lake.dialect import duckdb_engine
from headwater.lineage.lake.merging import lake_tables
from headwater.lineage.mapping import map_event
from headwater.lineage.rows import KINDS, Row, RowSet, merge_by_key
from headwater.lineage.sql import METADATA, store_digest
from headwater.lineage.store import StoreOptions
from headwater.lineage.store.status import size_of
from headwater.testing.examples import EXAMPLES
from tests.kit.lineage.all_stories import STORIES
from tests.kit.lineage.stories import Story, ask, producer_of


class Tables:
    """The tables of a store in DuckDB, filled anew for each story."""

    def __init__(self) -> None:
        self._database = duckdb.connect()
        self.engine = duckdb_engine(self._database.cursor)
        for table in METADATA.sorted_tables:
            self._database.execute(str(CreateTable(table).compile(dialect=self.engine.dialect)))

    def fill(self, rows: list[Row]) -> None:
        for kind in KINDS:
            self._database.execute(f"DELETE FROM {kind.name}")
        for row in merge_by_key(rows).values():
            values = row.values
            self._database.execute(f"INSERT INTO {row.kind.name} VALUES ({', '.join('?' * len(values))})", list(values))

    def close(self) -> None:
        self.engine.dispose()
        self._database.close()


@pytest.fixture(scope="module")
def tables() -> Iterator[Tables]:
    made = Tables()
    yield made
    made.close()


@pytest.fixture
def connection(tables: Tables) -> Iterator[Connection]:
    with tables.engine.connect() as connection:
        yield connection


@pytest.mark.slow
@pytest.mark.parametrize("story", STORIES, ids=lambda each: each.name)
def test_what_is_reported_is_answered(tables: Tables, connection: Connection, story: Story) -> None:
    producer = producer_of(story)
    tables.fill([row for each in producer.events for row in map_event(each)])
    answers = {check.question: ask(connection, check.question) for check in producer.checks}
    assert answers == {check.question: (check.rows, check.whys) for check in producer.checks}


def test_rows_come_back_as_they_were(tables: Tables, connection: Connection) -> None:
    """Bytes, numbers of 64 bits, NULLs and texts, of all kinds of rows."""
    state = RowSet()
    for each in EXAMPLES:
        state.merge(map_event(each))
    tables.fill(list(state.rows()))
    assert store_digest(connection) == state.digest()
    size = size_of(connection)
    assert (size.rows, size.bytes) == (len(list(state.rows())), None)


def test_an_addresss_parts_are_names() -> None:
    address = LakeAddress.parse("iceberg:lake.audit.lineage")
    assert (address.catalog, address.namespace) == ("lake", ("audit", "lineage"))
    assert address.table("jobs") == "`lake`.`audit`.`lineage`.`jobs`"
    assert StoreOptions.at("iceberg:lake.audit.lineage").lake == address
    for wrong in ("iceberg:lake", "iceberg:lake.", "iceberg:lake.a`b", "iceberg:lake.a b"):
        with pytest.raises(ConfigurationError, match="write iceberg:CATALOG"):
            LakeAddress.parse(wrong)
    with pytest.raises(ConfigurationError, match="paimon isn't supported"):
        LakeAddress.parse("paimon:lake.lineage")
    assert LakeAddress.parse("delta:lake.lineage").words == "delta:lake.lineage"
    with pytest.raises(ConfigurationError, match="needs a database"):
        _ = StoreOptions.at("iceberg:lake.lineage").target


def test_a_merge_names_each_column_once_and_looks_at_files_by_the_barrier() -> None:
    """A column that a MERGE forgets keeps its old value without an error."""
    for kind in KINDS:
        table = lake_tables()[kind.name]
        text = table.merge_text("target", "source", (10, 20))
        assert all(f"s.`{name}`" in text for name in table.columns), kind.name
        assert ("t.`barrier` >= 10L AND t.`barrier` <= 20L" in text) is (kind.partition == "barrier")
        assert "WHEN MATCHED" in text, "a MERGE without it is an append, which adds what somebody else has added"
