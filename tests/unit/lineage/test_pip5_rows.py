"""Paimon PIP-5's tables as views in a file of SQLite, and that memory and a database tell the same entities."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import Connection, Engine, create_engine, inspect
from sqlalchemy.exc import OperationalError

from headwater.errors import ConfigurationError
from headwater.events import CatalogId, Committed, Event, JobName, LineageDeleted
from headwater.events.administration import LineageScope
from headwater.events.base import StringMap
from headwater.lineage.api import DataLineage, TableLineage
from headwater.lineage.bulk import WriteBatch, merge_rows, pack_rows
from headwater.lineage.mapping import map_event
from headwater.lineage.meta import DatabaseLineageMeta, MemoryLineageMeta
from headwater.lineage.sql import METADATA, create_views
from headwater.lineage.sql.pip5_views import VIEWS
from headwater.lineage.store import open_store
from tests.kit.lineage import pip5_story
from tests.kit.lineage.views import fill, rows_of

pytestmark = pytest.mark.slow

D = pip5_story.D


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    file = tmp_path_factory.mktemp("empty") / "store.db"
    engine = create_engine(f"sqlite:///{file}")
    METADATA.create_all(engine)
    engine.dispose()
    return file.read_bytes()


@pytest.fixture
def file(tmp_path: Path, empty: bytes) -> Path:
    file = tmp_path / "store.db"
    file.write_bytes(empty)
    return file


@pytest.fixture
def engine(file: Path) -> Iterator[Engine]:
    engine = create_engine(f"sqlite:///{file}")
    yield engine
    engine.dispose()


@pytest.mark.parametrize("catalog", pip5_story.CATALOGS)
@pytest.mark.slow
def test_a_file_attached_has_the_rows_of_its_catalog(engine: Engine, file: Path, catalog: str) -> None:
    fill(engine, pip5_story.events(), ("paimon", catalog))
    reader = create_engine("sqlite://")
    with reader.connect() as connection:
        connection.exec_driver_sql(f"ATTACH 'file:{file}?mode=ro' AS paimon")
        for view in VIEWS:
            found = rows_of(connection, f"paimon.{view}")
            assert len(found) == len(set(found))
            assert set(found) == pip5_story.ROWS[catalog][view]
    reader.dispose()


def test_names_are_the_proposals(engine: Engine, file: Path) -> None:
    fill(engine, [], ("paimon", None))
    with closing(sqlite3.connect(file)) as connection:
        columns = [row[1] for row in connection.execute("PRAGMA table_info(source_snapshot_lineage)")]
    assert columns == ["job", "barrier_id", "database", "table", "snapshot_id", "create_time"]


def test_nobody_writes_not_even_who_may_write_the_file(engine: Engine, file: Path) -> None:
    fill(engine, pip5_story.events(), ("paimon", "catalog1"))
    with closing(sqlite3.connect(file)) as connection:
        for view in VIEWS:
            for statement in ("DELETE FROM {}", "INSERT INTO {0} SELECT * FROM {0}"):
                with pytest.raises(sqlite3.OperationalError, match="because it is a view"):
                    connection.execute(statement.format(view))
    with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as reader:
        for statement in ("DELETE FROM jobs", "DROP VIEW job_startup", "CREATE TABLE x (y)"):
            with pytest.raises(sqlite3.OperationalError, match="readonly database"):
                reader.execute(statement)


def test_a_second_catalog_in_a_file_is_refused(engine: Engine) -> None:
    fill(engine, pip5_story.events(), ("paimon", "catalog1"))
    with engine.begin() as connection:
        create_views(connection, "paimon", "paimon:file://host/warehouse1")  # it is the same
        with pytest.raises(ConfigurationError, match="give catalog catalog2 a store file of its own"):
            create_views(connection, "paimon", "catalog2")


def test_what_is_not_clear_is_an_error(engine: Engine) -> None:
    """As long as nobody updates the views: a store does, with each catalog that it learns of."""
    fill(engine, pip5_story.events(), ("paimon", None))
    with engine.connect() as connection, pytest.raises(OperationalError, match="record one of: catalog1,catalog2"):
        rows_of(connection, "sink_snapshot_lineage")


def of_catalog(connection: Connection, view: str) -> dict[str, set[tuple[Any, ...]]]:
    found: dict[str, set[tuple[Any, ...]]] = {}
    for *row, catalog in rows_of(connection, view):
        found.setdefault(catalog, set()).add(tuple(row))
    return found


@pytest.mark.parametrize("is_packed", [False, True])
def test_with_several_catalogs_each_has_views_and_those_of_all_have_a_column(
    tmp_path: Path, *, is_packed: bool
) -> None:
    """The views failed with an error about JSON, or two tables of one name were one. Writers of several processes and
    tasks of Spark give their rows packed."""
    events = pip5_story.events()
    with open_store(f"sqlite:///{tmp_path}/store.db") as store:
        for event in events:
            merged = list(map_event(event))
            store.bulk.merge(WriteBatch(packed=pack_rows(merged)) if is_packed else WriteBatch(merged))
        with store.engine.connect() as connection:
            for view in VIEWS:
                rows = {catalog: pip5_story.ROWS[catalog][view] for catalog in pip5_story.CATALOGS}
                assert of_catalog(connection, view) == {catalog: found for catalog, found in rows.items() if found}
                for catalog, expected in rows.items():
                    assert set(rows_of(connection, f"{view}_{catalog}")) == expected


def test_two_warehouses_of_one_name_are_told_apart_by_what_they_are(tmp_path: Path) -> None:
    """A view from when the name was clear would show the rows of another catalog."""
    other = CatalogId(type="paimon", location="file://host/warehouse3")
    story = pip5_story.Story()
    story.events += pip5_story.events()
    story.options("catalog1", other, options=StringMap({"comment": "another"}))
    with open_store(f"sqlite:///{tmp_path}/store.db") as store:
        for event in story.events:
            store.merge(map_event(event))
        with store.engine.connect() as connection:
            found = of_catalog(connection, "catalog_options")
            views = set(inspect(connection).get_view_names())
    assert set(found) == {"catalog2", "paimon:file://host/warehouse1", "paimon:file://host/warehouse3"}
    assert ("comment", "another") in found["paimon:file://host/warehouse3"]
    assert "catalog_options_catalog1" not in views
    assert "catalog_options_paimon:file://host/warehouse1" in views


def test_a_catalog_that_somebody_names_is_the_only_one(tmp_path: Path) -> None:
    with open_store(f"sqlite:///{tmp_path}/store.db") as store:
        for event in pip5_story.events():
            store.merge(map_event(event))
        with store.engine.begin() as connection:
            create_views(connection, catalog="catalog2")
        with store.engine.connect() as connection:
            assert set(rows_of(connection, "sink_job_lineage")) == pip5_story.ROWS["catalog2"]["sink_job_lineage"]
            assert not any(each.endswith("_catalog1") for each in inspect(connection).get_view_names())


def test_without_any_catalog_everything_is_shown(engine: Engine) -> None:
    fill(engine, [], ("paimon", None))
    store = DatabaseLineageMeta(engine)
    store.store_sink_data_lineage(DataLineage(job="job1", database=D, table="t", barrier_id=1, snapshot_id=5))
    with engine.connect() as connection:
        assert [row[:-1] for row in rows_of(connection, "sink_snapshot_lineage")] == [("job1", 1, D, "t", 5)]
        assert [row[:-1] for row in rows_of(connection, "sink_job_lineage")] == [("job1", D, "t")]


def test_jobs_of_one_name_in_two_namespaces_are_two(engine: Engine) -> None:
    story = pip5_story.Story()
    source, sink = pip5_story.read("orders", 1), pip5_story.made("daily", 1)
    story.options("catalog1")
    story.commit("etl", 1, [source], [])
    story.emit(Committed, JobName(namespace="prod", name="etl"), barrier=1, outputs=(sink,))
    fill(engine, story.events, ("paimon", None))
    with engine.connect() as connection:
        assert [row[0] for row in rows_of(connection, "source_snapshot_lineage")] == ["etl"]
        assert [row[0] for row in rows_of(connection, "sink_snapshot_lineage")] == ["prod/etl"]
        assert [row[0] for row in rows_of(connection, "sink_job_lineage")] == ["prod/etl"]


def deleted(scope: LineageScope, catalog: CatalogId) -> list[Event]:
    story = pip5_story.Story()
    story.events += pip5_story.events(catalog2_keeps_data=True)
    story.emit(LineageDeleted, scope=scope, catalog=catalog, before=story.now)
    return story.events


def entities(store: MemoryLineageMeta | DatabaseLineageMeta) -> list[set[TableLineage | DataLineage]]:
    tables: list[set[TableLineage | DataLineage]] = [
        set(store.source_table_lineages()),
        set(store.sink_table_lineages()),
    ]
    return [*tables, set(store.source_data_lineages()), set(store.sink_data_lineages())]


def in_memory(reported: list[Event]) -> MemoryLineageMeta:
    store = MemoryLineageMeta()
    store._merge(row for event in reported for row in map_event(event))  # pyright: ignore[reportPrivateUsage]
    return store


@pytest.mark.slow
@pytest.mark.parametrize("scope", [LineageScope.ALL, LineageScope.DATA, LineageScope.SINK_TABLES])
def test_what_is_deleted_of_one_catalog_is_there_of_the_other(engine: Engine, scope: LineageScope) -> None:
    reported = deleted(scope, pip5_story.CATALOGS["catalog2"])
    fill(engine, reported)
    for store in (in_memory(reported), DatabaseLineageMeta(engine)):
        tables = {each.job for each in store.sink_table_lineages()}
        data = {each.job for each in store.sink_data_lineages()}
        both = {"myJob", "report", "job_name", "elsewhere"}
        assert tables == (both if scope is LineageScope.DATA else {"myJob", "report"})
        assert data == (both if scope is LineageScope.SINK_TABLES else {"myJob", "report"})


@pytest.mark.slow
def test_a_deletion_by_a_name_that_stood_for_two_takes_what_lies_in_the_one(engine: Engine) -> None:
    other = CatalogId(type="paimon", location="file://host/warehouse3")
    story = pip5_story.Story()
    story.events += deleted(LineageScope.ALL, other)
    story.options("catalog1", other)
    fill(engine, story.events)
    nothing_gone = entities(in_memory(pip5_story.events(catalog2_keeps_data=True)))
    assert entities(DatabaseLineageMeta(engine)) == entities(in_memory(story.events)) == nothing_gone
    story.emit(LineageDeleted, scope=LineageScope.ALL, catalog=pip5_story.CATALOGS["catalog1"], before=story.now)
    with engine.begin() as connection:
        merge_rows(connection, map_event(story.events[-1]))
    left = {each.job for each in DatabaseLineageMeta(engine).sink_table_lineages()}
    assert left == {"job_name", "elsewhere"} == {each.job for each in in_memory(story.events).sink_table_lineages()}


def test_memory_and_a_database_have_the_same_entities(engine: Engine) -> None:
    again = [
        event.model_copy(update={"producer": UUID(int=3), "time": event.time + timedelta(hours=1)})
        for event in pip5_story.events()[:12]
    ]
    reported = [*pip5_story.events(), *again]
    fill(engine, reported)
    assert entities(DatabaseLineageMeta(engine)) == entities(in_memory(reported))
