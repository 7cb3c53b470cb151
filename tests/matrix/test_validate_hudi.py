"""Hudi's tables in a validation: which of their states are read again, and what results are made like.

What a table held is known by hand, and when its instants were completed is in its timeline's files.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headwater.lens import TargetEffect, lens
from headwater.versions.validation import hudi_tables
from headwater.versions.validation.model import RedirectedOutput, ResultStart
from headwater.versions.validation.results import (
    ResultTableError,
    ResultTables,
    additions_of,
    problems_of_table,
    rows_of_result,
    state_at,
)
from tests.kit.formats.hudi_place import Place, hudi_driver_fixture
from tests.kit.spark.driver import Driver

pytestmark = [pytest.mark.needs("hudi"), pytest.mark.long]
ROWS = "(id INT, v STRING, p STRING) USING hudi PARTITIONED BY (p)"
KEYED = f"{ROWS} TBLPROPERTIES (primaryKey = 'id', preCombineField = 'v'"
UPSERT = (
    "MERGE INTO {db}.%s t USING (SELECT 1 AS id, '%s' AS v, 'x' AS p) s ON t.id = s.id "
    "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
)


driver = hudi_driver_fixture


@pytest.fixture
def place(driver: Driver) -> Place:
    return Place(driver, driver.database())


def numbers(place: Place, table: str) -> list[int]:
    return sorted(each.number for each in place.commits(table))


def full(place: Place, table: str) -> str:
    return f"spark_catalog.{place.db}.{table}"


def output(place: Place, table: str, *, start: ResultStart = ResultStart.EMPTY, only: int = 0) -> RedirectedOutput:
    """A job's last commits to a table: so many of them, or all."""
    made = numbers(place, table)
    pairs = list(zip([None, *made], made, strict=False))[-only:]
    return RedirectedOutput(table=full(place, table), format="HUDI", generation=None, commits=tuple(pairs), start=start)


def values(frame: Any) -> list[Any]:
    assert frame.columns == ["id", "v", "p"]
    return sorted(tuple(row)[:2] for row in frame.collect())


def files(place: Place, table: str) -> dict[str, tuple[int, int]]:
    found = (each for each in (place.home / table).rglob("*") if each.is_file())
    return {str(each): (each.stat().st_size, each.stat().st_mtime_ns) for each in found}


def problems(place: Place, table: str, snapshot: int) -> str:
    return "; ".join(problems_of_table(place.driver.spark, full(place, table), snapshot, None, "HUDI"))


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_states_are_those_of_their_instants(place: Place, kind: str) -> None:
    """Fails if a later commit is in a state, or a row of another commit in what was added."""
    place.run(
        f"CREATE TABLE {{db}}.t {ROWS} TBLPROPERTIES (type = '{kind}')",
        *(f"INSERT INTO {{db}}.t VALUES ({number}, 'a', 'x')" for number in (1, 2, 3)),
        "DELETE FROM {db}.t WHERE id = 2",
    )
    first, second, third, last = numbers(place, "t")
    before = files(place, "t")
    spark = place.driver.spark
    found = [values(state_at(spark, full(place, "t"), each, "HUDI")) for each in (first, second, third, last)]
    assert found == [
        [(1, "a")],
        [(1, "a"), (2, "a")],
        [(1, "a"), (2, "a"), (3, "a")],
        [(1, "a"), (3, "a")],
    ]
    added = RedirectedOutput(
        table=full(place, "t"),
        format="HUDI",
        generation=None,
        commits=((first, second), (second, third)),
        start=ResultStart.EMPTY,
    )
    assert values(additions_of(spark, added)) == [(2, "a"), (3, "a")]
    assert [problems(place, "t", each) for each in (first, second, third, last)] == ["", "", "", ""]
    assert files(place, "t") == before
    assert "isn't in the table's timeline any more" in problems(place, "t", first + 1)


def test_a_state_that_time_travel_doesnt_give_is_refused(place: Place) -> None:
    """The first instant is completed after the second one, as by two writers. When the second was completed the table
    had row 2 alone, and time travel gives both. Fails if that isn't seen, or an instant that isn't completed."""
    place.run(f"CREATE TABLE {{db}}.t {ROWS}", *(f"INSERT INTO {{db}}.t VALUES ({n}, 'a', 'x')" for n in (1, 2, 3)))
    first, second, third = place.commits("t")
    late = first.file.with_name(f"{first.number}_{second.completed + 1}.commit")
    first.file.rename(late)
    assert [each.number for each in place.commits("t")] == [second.number, first.number, third.number]
    for each, other in ((first, second), (second, first)):
        said = problems(place, "t", each.number)
        assert f"another order than it was requested in, as was {other.number}" in said
    assert problems(place, "t", third.number) == ""
    requested = first.file.with_name(f"{third.number - 1}.commit.requested")
    requested.write_bytes(first.file.with_name(f"{first.number}.commit.requested").read_bytes())
    assert f"may change yet: {third.number - 1} was requested before it" in problems(place, "t", third.number)


def test_a_state_whose_files_were_cleaned_is_refused(place: Place) -> None:
    """Fails if rows are taken for missing that Hudi has cleaned: it reads such a state without an error."""
    place.run(f"CREATE TABLE {{db}}.t {KEYED})", *(UPSERT % ("t", v) for v in "abc"))
    first, second, third = numbers(place, "t")
    clean = "clean_policy => 'KEEP_LATEST_FILE_VERSIONS', file_versions_retained => 1"
    place.run(f"CALL run_clean(table => '{{db}}.t', {clean})")
    assert values(state_at(place.driver.spark, full(place, "t"), second, "HUDI")) == []
    for each in (first, second):
        assert "was cleaned since" in problems(place, "t", each)
    assert problems(place, "t", third) == ""
    place.run(UPSERT % ("t", "d"), "CALL run_clean(table => '{db}.t', retain_commits => 1)")
    place.run(UPSERT % ("t", "e"), "CALL run_clean(table => '{db}.t', retain_commits => 1)")
    assert "was cleaned since" in problems(place, "t", third)
    assert problems(place, "t", numbers(place, "t")[-1]) == ""


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_a_result_is_made_like_its_sink_and_removed_without_it(place: Place, kind: str) -> None:
    """Two rows have one key. Fails if one isn't copied, keys aren't kept, or a file of the sink's is touched."""
    place.run(
        f"CREATE TABLE {{db}}.t {KEYED}, type = '{kind}')",
        "INSERT INTO {db}.t VALUES (1, 'a', 'x'), (2, 'b', 'y')",
        "INSERT INTO {db}.t VALUES (1, 'c', 'x')",
        UPSERT % ("t", "z"),  # of the two Hudi changes one or both, by the kind of table
    )
    spark, sink = place.driver.spark, output(place, "t", start=ResultStart.COPY, only=1)
    assert hudi_tables.may_replace_rows(spark, full(place, "t"))
    before = files(place, "t")
    scratch = f"{place.db}_results"
    results = ResultTables(spark, scratch, [sink])
    results.create()
    result = results.names[sink.table]
    assert values(rows_of_result(spark, result, sink)) == [(1, "a"), (1, "c"), (2, "b")]
    own = _properties(place.driver.warehouse / "spark" / f"{scratch}.db" / "t")
    assert own == _properties(place.home / "t")
    assert own["hoodie.table.recordkey.fields"] == "id"
    spark.sql((UPSERT % ("t", "q")).format(db=f"spark_catalog.{scratch}"))
    now = {row[1] for row in values(state_at(spark, full(place, "t"), numbers(place, "t")[-1], "HUDI"))}
    assert "z" in now
    assert {row[1] for row in values(rows_of_result(spark, result, sink))} == {*now - {"z"}, "q"}
    assert results.drop(spark) == []
    assert not (place.driver.warehouse / "spark" / f"{scratch}.db").exists()
    assert files(place, "t") == before


def _properties(table: Path) -> dict[str, str]:
    """What Hudi keeps of a table, but for its names and what it has of the metadata table."""
    lines = (table / ".hoodie" / "hoodie.properties").read_text().splitlines()
    pairs = dict(each.split("=", 1) for each in lines if not each.startswith("#"))
    return {k: v for k, v in pairs.items() if k not in ("hoodie.database.name", "hoodie.table.checksum")}


def test_a_table_that_no_result_can_be_like_is_refused_by_what_differs(place: Place) -> None:
    """Its rows have no column that says which commit made them. Fails if a result is made nevertheless."""
    options = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.populate.meta.fields": "false",
    }
    rows = place.driver.spark.sql("SELECT 1 AS id, 'a' AS v")
    rows.write.format("hudi").options(**options).save(str(place.home / "t"))
    place.run(f"CREATE TABLE {{db}}.t USING hudi LOCATION '{place.home}/t'")
    results = ResultTables(place.driver.spark, f"{place.db}_results", [output(place, "t")])
    with pytest.raises(ResultTableError, match=r"hoodie\.populate\.meta\.fields is false, and true in the result"):
        results.create()
    assert results.drop(place.driver.spark) == []


def test_what_statements_do_with_a_result_is_noted(place: Place) -> None:
    """Fails if a write is taken for another one: then a result that begins empty would pass for the whole."""
    into = f"{place.db}.t"
    with_others: dict[str, tuple[str, ...]] = {
        f"INSERT INTO {into} VALUES (1, 'a', 'x')": ("ADDS",),
        f"DELETE FROM {into} WHERE id = 1": ("READS", "CHANGES"),
        f"UPDATE {into} SET v = 'b' WHERE id = 1": ("READS", "CHANGES"),
        f"INSERT OVERWRITE {into} VALUES (1, 'a', 'x')": ("REPLACES_ALL",),
        f"INSERT OVERWRITE {into} PARTITION (p = 'x') VALUES (1, 'a')": ("CHANGES",),
    }
    other = place.driver.database()
    place.run(f"CREATE TABLE {{db}}.t {KEYED})", f"CREATE TABLE {other}.t {KEYED})")
    place.run("INSERT INTO {db}.t VALUES (8, 'a', 'x')")
    spark = place.driver.spark
    for statement, effects in with_others.items():
        with lens(spark, redirects={full(place, "t"): f"spark_catalog.{other}.t"}) as opened:
            spark.sql(statement)
            noted = [each.effect for each in opened.uses()]
        assert noted == [TargetEffect(each) for each in effects], statement
    assert values(state_at(spark, full(place, "t"), numbers(place, "t")[-1], "HUDI")) == [(8, "a")]
    assert len(numbers(place, "t")) == 1


def test_a_table_that_is_overwritten_by_save_as_table_isnt_dropped(place: Place) -> None:
    """`saveAsTable` drops what it overwrites before anything is analysed. Fails if the lens comes too late."""
    place.run(f"CREATE TABLE {{db}}.t {ROWS}", "INSERT INTO {db}.t VALUES (1, 'a', 'x')")
    other = place.driver.database()
    place.run(f"CREATE TABLE {other}.t {ROWS}")
    spark, before = place.driver.spark, files(place, "t")
    rows = spark.sql("SELECT 2 AS id, 'b' AS v, 'x' AS p").write.format("hudi").mode("overwrite")
    with lens(spark, redirects={full(place, "t"): f"spark_catalog.{other}.t"}):
        with pytest.raises(Exception, match="which saveAsTable would drop to overwrite it"):
            rows.saveAsTable(f"{place.db}.t")
        rows.insertInto(f"{place.db}.t")
    assert files(place, "t") == before
    spark.catalog.refreshTable(f"{other}.t")
    assert [row.id for row in spark.table(f"{other}.t").collect()] == [2]
