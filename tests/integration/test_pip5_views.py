"""Paimon PIP-5's tables as views in real databases: what they hold, of which catalog, and that nobody writes there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, create_engine, inspect, text
from sqlalchemy.exc import DBAPIError

from headwater.errors import ConfigurationError
from headwater.events import CatalogId, Event
from headwater.events.base import StringMap
from headwater.lineage.sql import create_views
from headwater.lineage.sql.pip5_views import VIEWS
from headwater.local import Service
from tests.kit.lineage import pip5_story
from tests.kit.lineage.readers import PASSWORD, mariadb_reader, postgres_reader
from tests.kit.lineage.views import database_of, fill, rows_of

pytestmark = [pytest.mark.slow, pytest.mark.database]

OTHER = CatalogId(type="paimon", location="file://host/warehouse3")
KEYS = {"catalog_options": "key", "table_branches": "name"}
WRITES = ("UPDATE {view} SET {column} = {value}", "INSERT INTO {view} ({column}) VALUES ({value})")


@pytest.fixture
def pg(postgres: Service) -> Iterator[Engine]:
    with database_of(postgres.address) as engine:
        yield engine


@pytest.fixture
def maria(mariadb: Service) -> Iterator[Engine]:
    with database_of(mariadb.address) as engine:
        yield engine
        base = str(engine.url.database)
        with engine.begin() as connection:
            for name in inspect(connection).get_schema_names():
                if name.startswith(f"{base}_"):
                    connection.execute(text(f"DROP DATABASE {name}"))


def ask(connection: Connection, catalog: str) -> None:
    connection.execute(text("SELECT set_config('headwater.catalog', :it, false)"), {"it": catalog})


def refusal(engine: Engine, statement: str, catalog: str | None = None) -> str:
    with engine.connect() as connection:
        if catalog is not None:
            ask(connection, catalog)
        with pytest.raises(DBAPIError) as refused:
            connection.exec_driver_sql(statement)
    return str(refused.value.orig)


def one_name_for_two_warehouses() -> list[Event]:
    story = pip5_story.Story()
    story.events += pip5_story.events()
    story.options("catalog1", OTHER, options=StringMap({"comment": "another"}))
    return story.events


@pytest.mark.sample(1)
@pytest.mark.parametrize("view", VIEWS)
def test_on_postgresql_a_setting_says_whose_rows_they_are(pg: Engine, view: str) -> None:
    fill(pg, pip5_story.events(), ("paimon", None))
    for catalog, identity in pip5_story.CATALOGS.items():
        for called in (catalog, f"{identity.type}:{identity.location}"):
            with pg.connect() as connection:
                ask(connection, called)
                found = rows_of(connection, f"paimon.{view}")
            assert len(found) == len(set(found))
            assert set(found) == pip5_story.ROWS[catalog][view]


def test_on_postgresql_an_own_database_needs_no_setting(pg: Engine) -> None:
    fill(pg, pip5_story.events(), ("paimon_cata1", "catalog1"), ("paimon_cata2", "catalog2"))
    with pg.connect() as connection:
        for number, catalog in enumerate(pip5_story.CATALOGS, 1):
            for view in VIEWS:
                assert set(rows_of(connection, f"paimon_cata{number}.{view}")) == pip5_story.ROWS[catalog][view]


def test_without_a_setting_it_is_the_only_catalog(pg: Engine) -> None:
    only = [event for event in pip5_story.events() if "catalog2" not in event.model_dump_json()]
    fill(pg, only, ("paimon", None))
    with pg.connect() as connection:
        found = rows_of(connection, "paimon.sink_snapshot_lineage")
    assert set(found) == pip5_story.ROWS["catalog1"]["sink_snapshot_lineage"]


@pytest.mark.sample(1)
@pytest.mark.parametrize("view", VIEWS)
def test_on_postgresql_what_is_not_clear_is_an_error_even_where_no_row_is(pg: Engine, view: str) -> None:
    fill(pg, one_name_for_two_warehouses(), ("paimon", None))
    nothing = f"SELECT * FROM paimon.{view} WHERE {KEYS.get(view, 'job')} = 'nobody'"
    assert "one of: catalog1, catalog2" in refusal(pg, nothing)
    assert "no catalog nonsense is known" in refusal(pg, nothing, "nonsense")
    both = "paimon:file://host/warehouse1, paimon:file://host/warehouse3"
    assert both in refusal(pg, nothing, "catalog1")


def test_of_one_name_for_two_warehouses_each_has_the_rows_whose_data_lie_there(pg: Engine) -> None:
    fill(pg, one_name_for_two_warehouses(), ("paimon", None))
    with pg.connect() as connection:
        ask(connection, "paimon:file://host/warehouse1")
        for view in VIEWS:
            assert set(rows_of(connection, f"paimon.{view}")) == pip5_story.ROWS["catalog1"][view]
        ask(connection, "paimon:file://host/warehouse3")
        assert rows_of(connection, "paimon.sink_snapshot_lineage") == []
        assert ("comment", "another") in rows_of(connection, "paimon.catalog_options")


def test_a_second_catalog_makes_the_setting_necessary_on_postgresql(pg: Engine) -> None:
    fill(pg, pip5_story.events(), ("paimon", "catalog1"))
    with pg.begin() as connection:
        assert set(rows_of(connection, "paimon.job_startup")) == pip5_story.ROWS["catalog1"]["job_startup"]
        create_views(connection, "paimon", "paimon:file://host/warehouse1")  # it is the same
        assert set(rows_of(connection, "paimon.job_startup")) == pip5_story.ROWS["catalog1"]["job_startup"]
        create_views(connection, "paimon", "catalog2")
    assert "say which by the setting" in refusal(pg, "SELECT * FROM paimon.job_startup")


@pytest.mark.long
@pytest.mark.parametrize("catalog", pip5_story.CATALOGS)
def test_on_mariadb_each_catalog_has_a_database_of_its_own(maria: Engine, catalog: str) -> None:
    base = maria.url.database
    fill(maria, pip5_story.events(), (f"{base}_1", "catalog1"), (f"{base}_2", "catalog2"))
    with maria.connect() as connection:
        for view in VIEWS:
            found = rows_of(connection, f"{base}_{catalog[-1]}.{view}")
            assert len(found) == len(set(found))
            assert set(found) == pip5_story.ROWS[catalog][view], view


@pytest.mark.long
def test_on_mariadb_a_second_catalog_in_one_database_is_refused(maria: Engine) -> None:
    views = f"{maria.url.database}_v"
    fill(maria, pip5_story.events(), (views, "catalog1"))
    with maria.begin() as connection:
        create_views(connection, views, "paimon:file://host/warehouse1")  # it is the same
        with pytest.raises(ConfigurationError, match=r"show catalog catalog1: give catalog catalog2 a jdbc\.database"):
            create_views(connection, views, "catalog2")


@pytest.mark.long
def test_on_mariadb_what_is_not_clear_is_an_error(maria: Engine) -> None:
    views = f"{maria.url.database}_v"
    fill(maria, pip5_story.events(), (views, None))
    answer = refusal(maria, f"SELECT * FROM {views}.sink_snapshot_lineage")
    assert "several catalogs share these views: give each a jdbc.database of its own" in answer


@pytest.fixture(params=["pg", pytest.param("maria", marks=pytest.mark.long)])
def owned(request: pytest.FixtureRequest) -> tuple[Engine, str]:
    """Views by whoever made them, who may do everything."""
    engine: Engine = request.getfixturevalue(request.param)
    views = f"{engine.url.database}_v"
    fill(engine, pip5_story.events(), (views, "catalog1"))
    return engine, views


def test_nobody_writes_through_a_view_not_even_its_owner(owned: tuple[Engine, str]) -> None:
    engine, views = owned
    with engine.connect() as connection:
        answer = definitions(connection, views)
        before = {view: rows_of(connection, f"{views}.{view}") for view in VIEWS}
        columns = [(f"{views}.{view}", engine.dialect.identifier_preparer.quote(name)) for view, name, _ in answer]
    assert len(columns) == 32
    for view, column in columns:
        for statement in (f"UPDATE {view} SET {column} = {column}", f"INSERT INTO {view} ({column}) VALUES (NULL)"):
            assert is_refused(refusal(engine, statement)), statement
    for view in VIEWS:
        for statement in ("DELETE FROM {}", "INSERT INTO {0} SELECT * FROM {0}", "UPDATE {} SET nothing = 1"):
            refusal(engine, statement.format(f"{views}.{view}"))
    with engine.connect() as connection:
        assert {view: rows_of(connection, f"{views}.{view}") for view in VIEWS} == before


def is_refused(answer: str) -> bool:
    """For being a view, and not for what was written."""
    words = ("cannot update view", "cannot insert into view", "is not updatable", "is not insertable-into")
    return any(word in answer for word in words)


def definitions(connection: Connection, schema: str) -> Any:
    columns = "table_name, column_name, data_type, ordinal_position"
    query = f"SELECT {columns} FROM information_schema.columns WHERE table_schema = '{schema}' ORDER BY 1, 4"
    return [(view, name, kind) for view, name, kind, _ in connection.execute(text(query))]


def test_the_columns_are_the_proposals(pg: Engine, maria: Engine) -> None:
    maria_views = f"{maria.url.database}_v"
    for engine, database, words in (
        (pg, "paimon", ("text", "bigint", "timestamp with time zone")),
        (maria, maria_views, ("longtext", "bigint", "datetime")),
    ):
        fill(engine, [], (database, None))
        with engine.connect() as connection:
            assert definitions(connection, database) == columns(*words)


def columns(string: str, long: str, moment: str) -> list[tuple[str, str, str]]:
    table = [("job", string), ("database", string), ("table", string)]
    answer = [*table, ("create_time", moment)]
    data = [table[0], ("barrier_id", long), *table[1:], ("snapshot_id", long), ("create_time", moment)]
    views = {
        "catalog_options": [("key", string), ("value", string)],
        "job_startup": [*table, ("snapshot_id", long)],
        "sink_job_lineage": answer,
        "sink_snapshot_lineage": data,
        "source_job_lineage": answer,
        "source_snapshot_lineage": data,
        "table_branches": [
            *table[1:],
            *(("name", string), ("tag_name", string), ("tagged_snapshot_id", long), ("create_time", moment)),
        ],
    }
    return [(view, *column) for view, its in views.items() for column in its]


def test_views_that_are_as_they_should_be_are_left_alone(pg: Engine) -> None:
    """A reader who takes long would hold up everybody who opens the store otherwise."""
    fill(pg, pip5_story.events(), ("paimon", "catalog1"))
    with pg.connect() as reader, pg.connect() as opening:
        rows_of(reader, "paimon.job_startup")
        opening.execute(text("SET lock_timeout = '2s'"))
        create_views(opening, "paimon", "catalog1")
        opening.rollback()
    with pg.begin() as connection:
        connection.execute(text("DROP VIEW paimon.job_startup"))
        create_views(connection, "paimon")
        assert rows_of(connection, "paimon.job_startup")


@pytest.fixture(params=["pg", pytest.param("maria", marks=pytest.mark.long)])
def reading(request: pytest.FixtureRequest) -> Iterator[tuple[Engine, str, str]]:
    """As one who may read the views, of the owner's database: engine, its name, where the views are."""
    owner: Engine = request.getfixturevalue(request.param)
    base, views = str(owner.url.database), f"{owner.url.database}_v"
    fill(owner, pip5_story.events(), (views, "catalog1"))
    with ExitStack() as stack:
        if request.param == "pg":
            stack.enter_context(postgres_reader(owner))
            with owner.begin() as connection:
                connection.execute(text(f"GRANT USAGE ON SCHEMA {views} TO reader"))
                connection.execute(text(f"GRANT SELECT ON ALL TABLES IN SCHEMA {views} TO reader"))
        else:
            stack.enter_context(mariadb_reader(owner, views))
        there = owner.url.set(username="reader", password=PASSWORD)
        engine = create_engine(there if request.param == "pg" else there.set(database=views))
        yield engine, "public" if request.param == "pg" else base, views
        engine.dispose()


def test_a_reader_has_the_views_and_nothing_else(reading: tuple[Engine, str, str]) -> None:
    engine, base, views = reading
    with engine.connect() as connection:
        for view in VIEWS:
            assert set(rows_of(connection, f"{views}.{view}")) == pip5_story.ROWS["catalog1"][view]
        assert set(inspect(connection).get_view_names(views)) == set(VIEWS)
    for statement in (
        *(f"SELECT * FROM {base}.{name}" for name in ("writes", "catalogs", "pip5_databases", f"seed_catalog_{views}")),
        *(f"DROP VIEW {views}.{view}" for view in VIEWS),
        f"UPDATE {views}.job_startup SET snapshot_id = 1",
        f"DELETE FROM {views}.catalog_options",
        f"ALTER VIEW {views}.job_startup AS SELECT 1",
        f"CREATE TABLE {views}.mine (a INT)",
        f"CREATE OR REPLACE VIEW {views}.job_startup AS SELECT 1",
    ):
        answer = refusal(engine, statement)
        denied = ("denied", "must be owner", "does not exist", "not updatable", "cannot ", "syntax error")
        assert any(word in answer for word in denied), answer


def plan(connection: Connection, query: str) -> str:
    return "\n".join(str(tuple(row)) for row in connection.exec_driver_sql(f"EXPLAIN {query}"))


def test_what_is_asked_for_is_found_by_an_index(pg: Engine, maria: Engine) -> None:
    """Of few rows a database reads all, unless it is told to pay for that."""
    views = f"{maria.url.database}_v"
    for engine, database in ((pg, "paimon"), (maria, views)):
        fill(engine, pip5_story.events(), (database, "catalog1"))
    of_table = "SELECT * FROM {}.sink_snapshot_lineage WHERE {} = 'myTable' AND snapshot_id = 123"
    of_job = "SELECT * FROM {}.source_job_lineage WHERE job = 'myJob'"
    with pg.connect() as connection:
        for way in ("seqscan", "hashjoin", "mergejoin"):
            connection.execute(text(f"SET enable_{way} = off"))
        found = plan(connection, of_table.format("paimon", '"table"'))
        assert re.search(r"Index Cond: \(table_name = 'myTable'::text\)", found), found
        assert re.search(r"Index Cond: \(\(place_id = place.id\) AND .*\(snapshot = 123\)", found), found
        assert re.search(r"Cond: \(CASE WHEN .* = 'myJob'::text\)", plan(connection, of_job.format("paimon")))
    with maria.connect() as connection:
        assert "'pip5_places'" in plan(connection, of_table.format(views, "`table`"))
        assert "'pip5_table_lineage_job'" in plan(connection, of_job.format(views))
