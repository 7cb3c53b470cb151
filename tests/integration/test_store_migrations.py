"""What scripts make is what is declared, and a store of any age becomes one of today, whole.

The second and third version are made up: one adds (expand), the other takes away what nobody needs any more (contract).
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, insert, inspect, select, text

from headwater.errors import ConfigurationError
from headwater.lineage.rows import tables as t
from headwater.lineage.sql import METADATA
from headwater.lineage.sql.errors import StoreBusyError, StoreSchemaError, translate_errors
from headwater.lineage.sql.locking import exclusive_transaction
from headwater.lineage.store import creation, open_store
from headwater.lineage.store.creation import (
    VERSION,
    SchemaState,
    inspect_schema,
    make_schema,
    migrate,
    read_version,
    scripts,
    upgrade,
)
from headwater.lineage.store.engines import engine_for
from headwater.lineage.store.migrations import HISTORY, MigrationHistory, SchemaVersion
from headwater.lineage.store.options import StoreOptions
from tests.kit.lineage.later_release import SECOND, SECOND_VERSION, THIRD_VERSION, later_in, script
from tests.kit.lineage.reported_store import REPORTED, digest, digest_in_memory, rows_of

# The views have indexes of expressions, which nothing needs to see that looks for others.
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:Skipped unsupported reflection of expression"),
    pytest.mark.sample(10),
]


@pytest.fixture
def later(tmp_path: Path) -> MigrationHistory:
    return later_in(tmp_path)


def until(history: MigrationHistory, version: SchemaVersion) -> MigrationHistory:
    """As code of that version knows it."""
    known = history.versions[: history.versions.index(version) + 1]
    return MigrationHistory(known, history.scripts)


@pytest.fixture
def engine(place: str) -> Iterator[Engine]:
    engine = engine_for(StoreOptions.at(place).target)
    yield engine
    engine.dispose()


def from_scripts(engine: Engine, history: MigrationHistory, to: str) -> None:
    with exclusive_transaction(engine) as connection:
        if engine.dialect.name == "postgresql":
            make_schema(connection)
        VERSION.create(connection)
        upgrade(connection, history, to)


def test_the_scripts_are_the_versions() -> None:
    revisions = [script.revision for script in scripts(HISTORY).walk_revisions()]
    assert revisions[::-1] == [version.name for version in HISTORY.versions]


def test_from_zero_scripts_make_what_is_declared(place: str, engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """If this fails, a table was changed without a script for stores that exist."""
    monkeypatch.setattr("headwater.lineage.store.opening.make_views_if_allowed", lambda *_: None)  # with their indexes
    from_scripts(engine, HISTORY, HISTORY.newest.name)
    with engine.begin() as connection:
        made = described(connection)
        assert set(METADATA.tables) <= {*inspect(connection).get_table_names()}
        empty(connection)
    with open_store(place) as store, store.engine.connect() as connection:
        declared = described(connection)
    for one, other in zip(made, declared, strict=True):
        assert one == other


def empty(connection: Connection) -> None:
    if connection.dialect.name == "postgresql":
        connection.execute(text("DROP SCHEMA headwater CASCADE"))
    else:
        METADATA.drop_all(connection)
        VERSION.drop(connection)


def test_a_store_of_any_version_becomes_the_newest(place: str, later: MigrationHistory) -> None:
    """The same tables, whatever they were before; what was in them stays."""
    seen = []
    for version in later.versions:
        engine = engine_for(StoreOptions.at(place).target)
        from_scripts(engine, later, version.name)
        with engine.begin() as connection:
            jobs = METADATA.tables["jobs"]
            connection.execute(insert(jobs).values(id=b"1" * 16, job="j", first=1, last=1, about_stamp=b""))
        with open_store(place, history=later) as store, store.engine.begin() as connection:
            assert connection.execute(select(jobs.c.job)).scalar_one() == "j"
            assert read_version(connection) == THIRD_VERSION
            seen.append(described(connection))
            empty(connection)
        engine.dispose()
    assert seen[0] == seen[1] == seen[2]
    assert "operation" not in str(seen[0])


def test_the_last_release_works_on_what_was_added_to(place: str, later: MigrationHistory) -> None:
    second = until(later, SECOND_VERSION)
    with open_store(place) as before, before.engine.connect() as connection:
        before.merge(rows_of(REPORTED[:10]))
        connection.rollback()
        open_store(place, history=second).close()
        before.merge(rows_of(REPORTED))
        assert digest(before) == digest_in_memory(REPORTED), "what was open goes on"
    with open_store(place, create=False) as again:
        again.merge(rows_of(REPORTED))
        assert digest(again) == digest_in_memory(REPORTED), "what is opened then works too"
    with open_store(place, history=later) as newest, newest.engine.connect() as connection:
        assert read_version(connection) == THIRD_VERSION
    with pytest.raises(StoreSchemaError, match="at version 0003, and this headwater knows it up to 0001"):
        open_store(place)
    open_store(place, history=second).close()


def test_back_to_an_older_version_is_refused(place: str, engine: Engine, later: MigrationHistory) -> None:
    open_store(place).close()
    assert migrate(engine, later) == ["0002", "0003"]
    with pytest.raises(StoreSchemaError, match=r"never brought back to 0002.*restore a backup"):
        migrate(engine, later, to="0002")
    with pytest.raises(StoreSchemaError, match="there is no version 0004: there is 0001, 0002, 0003"):
        migrate(engine, later, to="0004")
    with engine.connect() as connection:
        assert read_version(connection) == THIRD_VERSION


def test_what_broke_off_is_undone_or_gone_on_with(place: str, engine: Engine, later: MigrationHistory) -> None:
    with open_store(place) as store:
        store.merge(rows_of(REPORTED))
    second = until(later, SECOND_VERSION)
    script(later.scripts, "v0002_more.py", SECOND, broken='raise RuntimeError("the power failed")')
    with pytest.raises(RuntimeError, match="the power failed"):
        migrate(engine, second)
    with engine.connect() as connection:
        assert inspect_schema(connection, second).standing is SchemaState.OLDER
        is_half = "weekday" in {column["name"] for column in inspect(connection).get_columns("commits")}
        assert is_half is (engine.dialect.name == "mysql"), "where it can be taken back, it is"
    with open_store(place) as store:
        assert digest(store) == digest_in_memory(REPORTED)
    script(later.scripts, "v0002_more.py", SECOND)
    assert migrate(engine, second) == ["0002"]
    with engine.connect() as connection:
        commits = connection.execute(text("SELECT count(*), min(weekday) FROM commits")).one()
        assert tuple(commits) == (len({*commit_ids()}), 7)
        assert "commits_weekday" in {index["name"] for index in inspect(connection).get_indexes("commits")}
    with open_store(place) as store:
        assert digest(store) == digest_in_memory(REPORTED)


def commit_ids() -> list[bytes]:
    return [row.id for row in rows_of(REPORTED) if row.kind == t.COMMIT]


def test_of_many_who_migrate_at_once_one_does_it(place: str, later: MigrationHistory) -> None:
    open_store(place).close()
    with ThreadPoolExecutor(4) as pool:
        stores = list(pool.map(lambda _: open_store(place, history=later), range(4)))
    with stores[0].engine.connect() as connection:
        assert read_version(connection) == THIRD_VERSION
    for store in stores:
        store.close()


def test_a_table_that_somebody_holds_is_not_waited_for_long(
    place: str, engine: Engine, later: MigrationHistory
) -> None:
    """Others would wait behind it."""
    with open_store(place) as store:
        store.merge(rows_of(REPORTED))
        if engine.dialect.name == "sqlite":
            return  # who reads there keeps nobody from writing
        with store.engine.connect() as holder:
            holder.execute(text("SELECT count(*) FROM commits"))
            began = time.monotonic()
            with pytest.raises(StoreBusyError), translate_errors("it"):
                migrate(engine, later)
            assert time.monotonic() - began < 50, (
                "a table is waited for some seconds, and a migration by others for a minute"
            )
        assert digest(store) == digest_in_memory(REPORTED)
    assert migrate(engine, later) == ["0002", "0003"]


def test_who_may_not_change_it_is_told_the_command(place: str, later: MigrationHistory) -> None:
    open_store(place).close()
    with pytest.raises(StoreSchemaError, match="`headwater store migrate --store"):
        open_store(place, history=later, create=False)


def test_without_alembic_the_extra_is_named(
    place: str, later: MigrationHistory, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_store(place).close()
    monkeypatch.setattr(creation, "find_spec", lambda _: None)
    with pytest.raises(ConfigurationError, match=r"-m pip install .*\[store\]"):
        open_store(place, history=later)
    open_store(place).close()


# What a database says of the tables in it: two that say the same are made alike.


_PARTITIONS = """
SELECT c.relname, pg_get_partkeydef(c.oid), pg_get_expr(c.relpartbound, c.oid), c.relkind::text,
       i.inhparent::regclass::text
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace LEFT JOIN pg_inherits i ON i.inhrelid = c.oid
WHERE n.nspname = 'headwater' AND c.relkind IN ('r', 'p') ORDER BY 1
"""
_MONTH = re.compile(r"_\d{4}_\d{2}$")
_INDEXES = "SELECT tablename, indexname, indexdef FROM pg_indexes WHERE schemaname = 'headwater' ORDER BY 1, 2"
_COLUMNS = """
SELECT table_name, column_name, data_type, collation_name, is_nullable, column_default, character_maximum_length
FROM information_schema.columns WHERE table_schema = 'headwater' ORDER BY 1, 2
"""


def described(connection: Connection) -> list[Any]:
    """Without the order of columns, which is another in tables that were changed, and without partitions of months."""
    match connection.dialect.name:
        case "postgresql":
            return [_selected(connection, each) for each in (_PARTITIONS, _INDEXES, _COLUMNS)]
        case "sqlite":
            return [_sqlite(connection, name) for name in sorted(inspect(connection).get_table_names())]
        case _:
            return [_mysql(connection, name) for name in sorted(inspect(connection).get_table_names())]


def _selected(connection: Connection, query: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in connection.execute(text(query)) if not _MONTH.search(row[0])]


def _mysql(connection: Connection, name: str) -> list[str]:
    reported = connection.execute(text(f"SHOW CREATE TABLE `{name}`")).one()[1]
    return sorted(line.strip().rstrip(",") for line in re.sub(r"AUTO_INCREMENT=\d+ ", "", reported).splitlines())


def _sqlite(connection: Connection, name: str) -> list[Any]:
    columns = sorted(tuple(row)[1:] for row in connection.exec_driver_sql(f"PRAGMA table_xinfo({name})"))
    indexes = sorted(
        (
            row.name,
            row.unique,
            row.partial,
            tuple(map(tuple, connection.exec_driver_sql(f"PRAGMA index_xinfo({row.name})"))),
        )
        for row in connection.exec_driver_sql(f"PRAGMA index_list({name})")
    )
    return [name, columns, indexes]
