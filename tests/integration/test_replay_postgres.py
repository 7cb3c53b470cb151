"""The switch-over on PostgreSQL for those who use the store: open connections, prepared statements, rights, views."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
from sqlalchemy import URL, text

from headwater.errors import ConfigurationError
from headwater.events import Committed, Event, TableName
from headwater.journal import LocalLog
from headwater.lineage.replacement.areas import Area, drop_area
from headwater.lineage.sql.errors import StoreSchemaError
from headwater.lineage.store import Store, StoreOptions, open_store
from headwater.lineage.store.migrations import HISTORY, MigrationHistory, SchemaVersion
from headwater.lineage.store.status import read_status
from tests.kit.events.written import CODEC, digest_in
from tests.kit.stores import DATABASES, database_on
from tests.kit.writers.set_back import commits, compared, law, replayed, write_all

pytestmark = [pytest.mark.slow, pytest.mark.database]

COUNT = "SELECT count(*) FROM writes"
VIEW = "SELECT count(*) FROM paimon.sink_snapshot_lineage"


@pytest.fixture(params=DATABASES[1:2])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[URL]:
    with database_on(request.param, request, tmp_path) as url:
        yield url


@pytest.fixture
def options(url: URL) -> StoreOptions:
    return StoreOptions.at(url.render_as_string(hide_password=False))


@pytest.fixture
def store(options: StoreOptions, log: LocalLog) -> Iterator[Store]:
    """Of 100 events, one of which the store has lost."""
    with log.writer() as writer:
        for event in commits()[:100]:
            writer.append(CODEC.encode(named(event)))
    with open_store(options) as opened:
        write_all(log, opened)
        with opened.engine.begin() as connection:
            connection.execute(text("DELETE FROM writes WHERE snapshot = 7"))
        yield opened


def named(event: Event) -> Event:
    """With names of tables, which the views show."""
    assert isinstance(event, Committed)
    name = TableName(catalog="lake", database="sales", table="orders")
    inputs, outputs = (
        tuple(one.model_copy(update={"table": name}) for one in each) for each in (event.inputs, event.outputs)
    )
    return event.model_copy(update={"inputs": inputs, "outputs": outputs})


@pytest.fixture
def log(tmp_path: Path) -> LocalLog:
    return LocalLog.open(tmp_path / "log")


@pytest.fixture
def role(store: Store) -> Iterator[str]:
    name = f"r{uuid4().hex[:12]}"
    with store.engine.begin() as connection:
        connection.execute(text(f"CREATE ROLE {name} LOGIN PASSWORD 'secret'"))
    yield name
    with store.engine.begin() as connection:
        connection.execute(text(f"DROP OWNED BY {name}"))
        connection.execute(text(f"DROP ROLE {name}"))


def connected(url: URL, role: str | None = None) -> psycopg.Connection[tuple[int]]:
    user = {"user": role, "password": "secret"} if role else {"user": url.username, "password": url.password}
    place = {"host": url.host, "port": url.port, "dbname": url.database}
    return psycopg.connect(**user, **place, autocommit=True, prepare_threshold=0)  # type: ignore[arg-type]


def test_prepared_statements_of_open_connections_see_the_rebuilt_tables(
    url: URL, log: LocalLog, options: StoreOptions, store: Store
) -> None:
    """PostgreSQL has prepared them with the old tables. It plans them anew, because a schema was renamed."""
    with connected(url) as reader:
        reader.execute("SET search_path TO headwater")
        before = [reader.execute(each).fetchone() for each in (COUNT, VIEW, COUNT, VIEW)]
        assert replayed(log, options).is_switched
        after = [reader.execute(each).fetchone() for each in (COUNT, VIEW)]
    assert before == [(99,), (99,), (99,), (99,)]
    assert after == [(100,), (100,)]


@pytest.mark.long
def test_a_transaction_that_reads_on_keeps_what_it_saw(
    url: URL, log: LocalLog, options: StoreOptions, store: Store
) -> None:
    """It holds up nobody, as long as it doesn't use the views."""
    with connected(url) as reader:
        reader.execute("SET search_path TO headwater")
        reader.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        before = reader.execute(COUNT).fetchone()
        assert replayed(log, options).is_switched
        assert reader.execute("SELECT count(*) FROM headwater_former.writes").fetchone() == before == (99,)
        reader.execute("COMMIT")
        assert reader.execute(COUNT).fetchone() == (100,)


def test_rights_go_with_the_names(url: URL, log: LocalLog, options: StoreOptions, store: Store, role: str) -> None:
    with store.engine.begin() as connection:
        for each in (
            f"GRANT USAGE ON SCHEMA headwater, paimon TO {role}",
            f"GRANT SELECT ON headwater.writes TO {role}",
            f"GRANT SELECT (barrier) ON headwater.reads TO {role}",
            f"GRANT SELECT ON ALL TABLES IN SCHEMA paimon TO {role}",
            f"ALTER DEFAULT PRIVILEGES IN SCHEMA headwater GRANT SELECT ON TABLES TO {role}",
        ):
            connection.execute(text(each))
    with connected(url, role) as reader:
        assert reader.execute("SELECT count(*) FROM headwater.writes").fetchone() == (99,)
        assert replayed(log, options).is_switched
        assert reader.execute("SELECT count(*) FROM headwater.writes").fetchone() == (100,)
        assert reader.execute("SELECT count(barrier) FROM headwater.reads").fetchone() == (100,)
        assert reader.execute(VIEW).fetchone() == (100,)
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            reader.execute("SELECT count(snapshot) FROM headwater.reads")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            reader.execute("DELETE FROM headwater.writes")
        with store.engine.begin() as connection:
            connection.execute(text("CREATE TABLE later (x int)"))
        assert reader.execute("SELECT count(*) FROM headwater.later").fetchone() == (0,)


def test_a_view_of_somebody_else_is_named_and_not_left_behind(
    url: URL, log: LocalLog, options: StoreOptions, store: Store
) -> None:
    with store.engine.begin() as connection:
        connection.execute(text("CREATE VIEW public.mine AS SELECT snapshot FROM headwater.writes"))
    with pytest.raises(ConfigurationError, match=r"view public\.mine"):
        replayed(log, options)
    with store.engine.begin() as connection:
        assert connection.execute(text(COUNT)).scalar() == 99
        connection.execute(text("DROP VIEW public.mine"))
    assert replayed(log, options).is_switched


@pytest.mark.long
def test_old_tables_that_somebody_uses_are_not_dropped(
    url: URL, log: LocalLog, options: StoreOptions, store: Store
) -> None:
    assert replayed(log, options).is_switched
    with store.engine.begin() as connection:
        connection.execute(text("CREATE TABLE headwater_former.notes (x int)"))
    with pytest.raises(Exception, match="other objects depend on it"):
        drop_area(options, Area.FORMER)
    with store.engine.begin() as connection:
        assert connection.execute(text("SELECT count(*) FROM headwater_former.writes")).scalar() == 99
        connection.execute(text("DROP TABLE headwater_former.notes"))
    assert drop_area(options, Area.FORMER)


@pytest.mark.long
def test_a_table_that_is_in_use_for_long_delays_the_switch(
    url: URL, log: LocalLog, options: StoreOptions, store: Store
) -> None:
    """Somebody holds a lock that the fence needs. When it is given back, the switch-over happens."""
    with connected(url) as other:
        other.execute("BEGIN")
        other.execute("LOCK TABLE headwater.commits IN ROW EXCLUSIVE MODE")
        timer = threading.Timer(6, other.execute, ["COMMIT"])
        timer.start()
        assert replayed(log, options).is_switched
        assert timer.finished.is_set()
        timer.join()
    assert digest_in(store) == law(log)


def test_a_store_of_an_older_version_is_replaced_by_one_of_this_version(
    log: LocalLog, options: StoreOptions, store: Store
) -> None:
    """The way up without a migration: the live tables stay as they are until the switch-over."""
    older = MigrationHistory((SchemaVersion("0000", "0000"), *HISTORY.versions), HISTORY.scripts)
    with store.engine.begin() as connection:
        connection.execute(text("UPDATE schema_version SET version_num = '0000', least = '0000'"))
        connection.execute(text("ALTER TABLE runs RENAME COLUMN application TO app"))
    result = replayed(log, options, history=older)
    assert result.is_switched
    found = compared(options, Area.FORMER)
    assert (found.skipped, found.differing) == (("runs",), 1), "besides the row that was lost"
    assert read_status(options).version == HISTORY.newest.name
    assert digest_in(store) == law(log)


def test_a_store_of_a_newer_version_is_refused(log: LocalLog, options: StoreOptions, store: Store) -> None:
    with store.engine.begin() as connection:
        connection.execute(text("UPDATE schema_version SET version_num = '9999', least = '9999'"))
    with pytest.raises(StoreSchemaError, match="would lose what a newer one stored"):
        replayed(log, options)
