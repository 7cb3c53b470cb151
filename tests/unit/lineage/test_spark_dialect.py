"""The text that Spark gets of a question, and what a connection does with a session; tests/integration has Spark."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from sqlalchemy import select

from headwater.errors import ConfigurationError
from headwater.lineage.client import Lineage
from headwater.lineage.lake import LakeAddress
from headwater.lineage.lake.formats import format_of
from headwater.lineage.lake.merging import VERSION, VERSION_PROPERTY, lake_tables
from headwater.lineage.lake.spark_dialect import SparkDialect, literal
from headwater.lineage.rows import tables as t
from headwater.lineage.sql.errors import StoreBrokenError, StoreSchemaError, StoreUnreachableError, translate_errors
from headwater.lineage.sql.key_lookup import PairLookup, select_by_keys
from headwater.lineage.sql.tables import table_of
from headwater.lineage.sql.tombstones import not_hidden
from headwater.lineage.store import open_store


@dataclass
class Frame:
    rows: list[Any]
    columns: list[str]

    def collect(self) -> list[Any]:
        return self.rows

    def count(self) -> int:
        return len(self.rows)


@dataclass
class Property:
    key: str
    value: str


@dataclass
class Session:
    """Keeps the statements that it gets, and has the answers that a test gives."""

    answers: dict[str, list[Any]] = field(default_factory=dict)
    texts: list[str] = field(default_factory=list)
    error: Exception | None = None
    conf: Any = field(default_factory=dict)
    missing: str = ""

    def sql(self, sqlQuery: str) -> Frame:  # noqa: N803 - as Spark calls it
        self.texts.append(sqlQuery)
        if self.missing:
            raise RuntimeError(self.missing)
        if "TBLPROPERTIES" in sqlQuery:
            return Frame([Property(VERSION_PROPERTY, VERSION)], ["key", "value"])
        if self.error is not None:
            raise self.error
        rows = next((rows for part, rows in self.answers.items() if part in sqlQuery), [])
        return Frame(rows, [f"c{n}" for n in range(len(rows[0]) if rows else 2)])


def test_values_are_literals_that_say_nothing_else() -> None:
    assert literal(b"\x01'") == "X'0127'"
    assert literal(5) == "5L"
    assert literal(True) == "TRUE"
    assert literal(None) == "NULL"
    assert literal("lake.db-1/x") == "'lake.db-1/x'"
    for risky in ("it's", "a\\", "${env:HOME}", "%s", "`", "ü", "a\nb"):
        assert literal(risky) == f"CAST(X'{risky.encode().hex()}' AS STRING)"


def test_each_table_is_read_at_one_version_by_a_connection() -> None:
    """The version is asked for when the connection first uses the table. A table without any is empty, and so is one
    that no lake has."""
    session = Session({"`table_edges`.refs": [(7,)], "VERSION AS OF 7": [(b"\x01", b"\x02")]})
    edge = table_of(t.TABLE_EDGE)
    with Lineage.open("iceberg:lake.lineage", spark=session) as lineage:
        assert repr(lineage.store) == "Store(iceberg:lake.lineage)"
        with lineage.store.engine.connect() as connection:
            for _ in range(2):
                connection.execute(select(edge.c.source, edge.c.target).limit(3)).all()
            connection.execute(select(table_of(t.DATASET).c.id)).all()
            connection.execute(select(table_of(t.DATASET).alias("d").c.id)).all()
    asked = [each for each in session.texts if ".refs" in each]
    assert asked == [f"SELECT snapshot_id FROM `lake`.`lineage`.`{name}`.refs WHERE name = 'main'" for name in
                     (edge.name, "datasets")]  # fmt: skip
    read = [each for each in session.texts if "VERSION AS OF 7 AS table_edges" in each]
    assert len(read) == 2
    assert "LIMIT CAST(3L AS INT)" in read[0]
    empty = [each for each in session.texts if "WHERE FALSE)" in each]
    assert [each.partition(" WHERE FALSE)")[2] for each in empty] == [" AS datasets", " AS d"]


def test_pairs_and_keys_are_lists() -> None:
    session = Session({".refs": [(7,)]})
    row = table_of(t.WRITE).c
    with Lineage.open("iceberg:lake.lineage", spark=session) as lineage, lineage.store.engine.connect() as connection:
        list(PairLookup(select(row.id), row.place_id, row.snapshot).among(connection, [(b"\x01", 5), (b"\x02", 6)]))
        list(select_by_keys(connection, select(row.id), row.id, [b"\x03", b"\x04"]))
    assert session.texts[-2].endswith("(writes.place_id, writes.snapshot) IN ((X'01', 5L), (X'02', 6L))")
    assert session.texts[-1].endswith("writes.id IN (X'03', X'04')")


def test_no_condition_about_deletions_refers_two_statements_out() -> None:
    """Spark knows the next enclosing statement only. `belongs_to`, which other databases get, is three EXISTS deep."""
    row = table_of(t.TABLE_LINEAGE).c
    text = str(select(row.id).where(not_hidden(row, row, ("ALL",))).compile(dialect=SparkDialect()))
    assert text.count("its_dataset IS NULL OR") == 6, "five kinds of tombstones, and options"
    derived = [each.partition(") AS anon_")[0] for each in text.split("EXISTS (SELECT 1 \nFROM (SELECT")[1:]]
    assert len(derived) == 6
    assert not any("table_lineage" in each for each in derived), "what stands in a derived table refers to it alone"
    elsewhere = str(select(row.id).where(not_hidden(row, row, ("ALL",))))
    assert "its_dataset" not in elsewhere


@pytest.mark.parametrize(
    ("error", "raised"),
    [
        (RuntimeError("[UNRESOLVED_COLUMN] no such thing"), StoreBrokenError),
        (RuntimeError("Cannot call methods on a stopped SparkContext."), StoreUnreachableError),
        (ConnectionRefusedError("gone"), StoreUnreachableError),
    ],
)
def test_errors_of_spark_are_those_of_a_store(error: Exception, raised: type[Exception]) -> None:
    session = Session()
    with Lineage.open("iceberg:lake.lineage", spark=session) as lineage:
        session.error = error
        with pytest.raises(raised), translate_errors("it"), lineage.store.engine.connect() as connection:
            connection.execute(select(table_of(t.JOB)))


def test_what_is_no_lake_is_said() -> None:
    session = Session(missing="[TABLE_OR_VIEW_NOT_FOUND] The table can't be found")
    with pytest.raises(StoreSchemaError, match=r"there is no lake store in delta:spark_catalog\.lineage yet"):
        Lineage.open("delta:spark_catalog.lineage", spark=session)
    with pytest.raises(ConfigurationError, match="leave `spark` out for a database"):
        open_store("sqlite://", readonly=True, spark=Session())
    with pytest.raises(ConfigurationError, match="is read by Spark alone"):
        Lineage.open("delta:spark_catalog.lineage")


def test_a_format_checks_its_session_and_makes_its_tables() -> None:
    address = LakeAddress.parse("delta:spark_catalog.lineage")
    of = format_of(address)
    with pytest.raises(ConfigurationError, match=r"spark\.sql\.catalog\.spark_catalog isn't set"):
        of.check_session(Session(), address)
    session = Session(conf={"spark.sql.catalog.spark_catalog": of.catalog_class})
    with pytest.raises(ConfigurationError, match="lacks that of Delta"):
        of.check_session(session, address)
    of.check_session(Session(conf={**session.conf, "spark.sql.extensions": of.extensions}), address)
    text = lake_tables()["jobs"].create_text(address)
    assert "USING delta TBLPROPERTIES" in text
    assert "'delta.isolationLevel' = 'Serializable'" in text
