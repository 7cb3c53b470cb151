"""What goes wrong with real databases is reported in our words: what it is, whether to try again, and what to do."""

from __future__ import annotations

import socket
import threading
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from sqlalchemy import URL, Connection, create_engine, make_url, text

from headwater.errors import ConfigurationError, HeadwaterError
from headwater.lineage.bulk import merge_rows
from headwater.lineage.sql.errors import (
    StoreAccessError,
    StoreBusyError,
    StoreDataError,
    StoreRightsError,
    StoreSchemaError,
    StoreUnreachableError,
)
from headwater.lineage.store import engines, open_store, translate_errors
from headwater.lineage.store.options import StoreOptions
from headwater.local import Service
from tests.kit.lineage.reported_store import REPORTED, digest, digest_in_memory, rows_of
from tests.kit.ports import refusing_port
from tests.kit.stores import own_database
from tests.kit.waiting import PATIENCE

pytestmark = pytest.mark.slow
SERVERS = [
    pytest.param("postgres", marks=pytest.mark.database),
    pytest.param("mariadb", marks=[pytest.mark.database, pytest.mark.long]),
]


@pytest.fixture(params=SERVERS)
def server(request: pytest.FixtureRequest) -> Service:
    found: Service = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def url(server: Service) -> Iterator[URL]:
    with own_database(server) as text_of_it:
        yield make_url(text_of_it)


def error_text(url: URL | str, error: type[HeadwaterError], words: str, **how: bool) -> str:
    """The error's words, and those of all that led to it."""
    given = url if isinstance(url, str) else url.render_as_string(hide_password=False)
    with pytest.raises(error, match=words) as raised:
        open_store(given, **how)  # type: ignore[arg-type]
    return "".join(traceback.format_exception(raised.value))


def test_a_driver_that_is_not_known(url: URL) -> None:
    options = StoreOptions.of(
        {"jdbc.url": f"jdbc:{url.drivername.partition('+')[0]}://h/l", "jdbc.driver": "org.postgres.Driver"}
    )
    with pytest.raises(
        ConfigurationError, match=r"no driver org.postgres.Driver: did you mean org.postgresql.Driver\?"
    ):
        open_store(options)


def test_a_client_that_is_not_installed(url: URL, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "find_spec", lambda _: None)
    extra = "postgres" if url.drivername.startswith("postgresql") else "mysql"
    error_text(url, ConfigurationError, rf"-m pip install .*\[{extra}\]")


def test_a_wrong_password(url: URL) -> None:
    words = error_text(url.set(password="5ecret-and-wrong"), StoreAccessError, r"jdbc\.username and jdbc\.password")
    assert "5ecret" not in words
    assert "headwater@127.0.0.1" in words


def test_a_database_that_is_not_there(url: URL) -> None:
    error_text(url.set(database="nowhere"), StoreAccessError, r"nowhere.*look at jdbc\.url")


def test_a_port_where_nobody_is(url: URL) -> None:
    with refusing_port() as port:
        error_text(url.set(port=port), StoreUnreachableError, "is it running, and are host and port right")


def test_a_host_that_does_not_answer(url: URL) -> None:
    """It takes the connection, and says nothing."""
    began = time.monotonic()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent_url = url.set(port=silent.getsockname()[1]).update_query_dict({"connect_timeout": "2"})
        error_text(silent_url, StoreUnreachableError, "is it running")
    assert time.monotonic() - began < PATIENCE, "else it is waited for without an end"


@pytest.fixture
def nobody(url: URL) -> Iterator[URL]:
    """A user who may get in, and no more."""
    name = f"u{uuid4().hex[:8]}"
    root = create_engine(url, isolation_level="AUTOCOMMIT")
    is_postgres = root.dialect.name == "postgresql"
    statements = (
        [f"CREATE ROLE {name} LOGIN PASSWORD 'pw'"]
        if is_postgres
        else [
            f"CREATE USER {name}@'127.0.0.1' IDENTIFIED BY 'pw'",
            f"GRANT SELECT ON {url.database}.* TO {name}@'127.0.0.1'",
        ]
    )
    gone = [f"DROP OWNED BY {name}", f"DROP ROLE {name}"] if is_postgres else [f"DROP USER {name}@'127.0.0.1'"]
    with root.connect() as connection:
        for each in statements:
            connection.execute(text(each))
    yield url.set(username=name, password="pw")
    with root.connect() as connection:
        for each in gone:
            connection.execute(text(each))
    root.dispose()


def test_a_user_who_may_not_make_it(nobody: URL) -> None:
    words = error_text(nobody, StoreRightsError, "has to run `headwater store init --store")
    assert "pw" not in words.replace("password", "")
    engine = create_engine(nobody)
    with engine.connect() as connection:
        assert (
            connection.execute(
                text("SELECT count(*) FROM information_schema.tables WHERE table_name = 'jobs'")
            ).scalar()
            == 0
        )
    engine.dispose()


def session_of(connection: Connection) -> int:
    function = "pg_backend_pid" if connection.dialect.name == "postgresql" else "connection_id"
    return int(connection.execute(text(f"SELECT {function}()")).scalar_one())


def end(session: int, url: URL) -> None:
    """As an administrator ends one, or a server that stops."""
    root = create_engine(url, isolation_level="AUTOCOMMIT")
    with root.connect() as other:
        is_postgres = root.dialect.name == "postgresql"
        other.execute(text(f"SELECT pg_terminate_backend({session})" if is_postgres else f"KILL {session}"))
    root.dispose()


def test_a_connection_that_breaks_in_mid_transaction(url: URL) -> None:
    """Nothing of it is there, and the next one works."""

    def broken() -> None:
        with translate_errors("it"), store.engine.begin() as connection:
            merge_rows(connection, rows_of(REPORTED))
            end(session_of(connection), url)
            merge_rows(connection, rows_of(REPORTED))

    with open_store(url.render_as_string(hide_password=False)) as store:
        with pytest.raises(StoreUnreachableError, match="What wasn't committed is undone; try again"):
            broken()
        assert digest(store) == digest_in_memory([])
        store.merge(rows_of(REPORTED))
        assert digest(store) == digest_in_memory(REPORTED)


def test_connections_that_broke_while_nobody_used_them(url: URL) -> None:
    with open_store(url.render_as_string(hide_password=False)) as store:
        with store.engine.connect() as connection:
            number = session_of(connection)
        end(number, url)
        store.merge(rows_of(REPORTED))
        assert digest(store) == digest_in_memory(REPORTED)


def test_two_who_wait_for_each_other(url: URL) -> None:
    """One of them is told to try again."""
    found: list[type[HeadwaterError]] = []
    both = threading.Barrier(2)
    change = text("UPDATE jobs SET last = last + 1 WHERE id = :id")

    def take(order: list[bytes]) -> None:
        try:
            with translate_errors("it"), store.engine.begin() as connection:
                connection.execute(change, {"id": order[0]})
                both.wait(60)
                connection.execute(change, {"id": order[1]})
        except HeadwaterError as e:
            found.append(type(e))

    with open_store(url.render_as_string(hide_password=False)) as store:
        store.merge(rows_of(REPORTED))
        with store.engine.connect() as connection:
            names = list(connection.execute(text("SELECT id FROM jobs ORDER BY id LIMIT 2")).scalars())
        threads = [threading.Thread(target=take, args=(order,)) for order in (names, names[::-1])]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    assert found == [StoreBusyError]


def test_what_a_row_can_not_hold_is_the_row_s_fault(place: str) -> None:
    with (
        open_store(place) as store,
        pytest.raises(StoreDataError),
        translate_errors("it"),
        store.engine.begin() as connection,
    ):
        connection.execute(text("INSERT INTO jobs (id, first, last, about_stamp) VALUES (NULL, 1, 1, NULL)"))


def test_tables_that_went_under_it(place: str) -> None:
    with open_store(place) as store:
        with store.engine.begin() as connection:
            connection.execute(text("ALTER TABLE jobs RENAME TO gone"))
        with pytest.raises(StoreSchemaError, match="restart what began before it changed"):
            store.merge(rows_of(REPORTED))


def test_a_file_that_somebody_else_writes_to_is_waited_for(tmp_path: Path) -> None:
    def impatient() -> None:
        with translate_errors("it"), store.engine.connect() as connection:
            connection.exec_driver_sql("PRAGMA busy_timeout = 50")
            merge_rows(connection, rows_of(REPORTED))

    with open_store(f"{tmp_path}/store.db") as store:
        with store.engine.connect() as other:
            other.exec_driver_sql("UPDATE jobs SET last = last")
            with pytest.raises(StoreBusyError, match="database is locked: try again"):
                impatient()
        store.merge(rows_of(REPORTED))
