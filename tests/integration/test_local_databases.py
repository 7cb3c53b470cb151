"""PostgreSQL and MariaDB started here: they answer, keep what was committed over kill -9, and let nobody else in."""

from __future__ import annotations

import socket
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from sqlalchemy import URL, create_engine, make_url, text
from sqlalchemy.exc import OperationalError
from sqlalchemy.pool import NullPool

from headwater.local import MariaDBServer, PostgresServer, Service, StartError
from headwater.local.fetch import Artifact, Fetcher
from headwater.local.mariadb import fetched_installation

pytestmark = [pytest.mark.database, pytest.mark.sample(4)]

Server = type[PostgresServer] | type[MariaDBServer]
BOTH = pytest.mark.parametrize("server", [PostgresServer, MariaDBServer])


def run(url: str | URL, *statements: str) -> object:
    """Run the statements in one transaction; return the one value of the last."""
    engine = create_engine(url, poolclass=NullPool)
    try:
        with engine.begin() as connection:
            results = [connection.execute(text(statement)) for statement in statements]
            return results[-1].scalar_one() if results[-1].returns_rows else None
    finally:
        engine.dispose()


def test_the_shared_postgres_answers(postgres: Service) -> None:
    assert run(postgres.address, "SELECT 1") == 1
    assert make_url(postgres.address).drivername == "postgresql+psycopg"


def test_the_shared_mariadb_answers(mariadb: Service) -> None:
    assert run(mariadb.address, "SELECT 1") == 1
    assert make_url(mariadb.address).drivername == "mysql+pymysql"


@pytest.fixture
def open_directory() -> Iterator[Path]:
    """A directory that the account of the servers can enter; pytest's own are closed to all but us."""
    with tempfile.TemporaryDirectory(prefix="headwater-test-") as place:
        Path(place).chmod(0o711)
        yield Path(place)


@BOTH
def test_killed_and_restarted_it_keeps_what_was_committed(server: Server) -> None:
    with server(durable=False) as database:
        address, first = database.address, database.pid
        run(address, "CREATE TABLE kept (id INT PRIMARY KEY)", "INSERT INTO kept VALUES (1), (2)")
        database.kill()
        assert not database.running
        with pytest.raises(OperationalError):
            run(address, "SELECT 1")
        database.restart()
        assert (database.address, database.pid != first) == (address, True)
        assert run(address, "SELECT count(*) FROM kept") == 2
        database.restart()  # also in order, while it runs
        assert run(address, "SELECT count(*) FROM kept") == 2


def test_a_directory_given_keeps_the_port_unless_somebody_else_has_it(open_directory: Path) -> None:
    with PostgresServer(directory=open_directory, durable=False) as database:
        first = database.address
    with PostgresServer(directory=open_directory, durable=False) as database:
        assert database.address == first
    with socket.create_server(("127.0.0.1", int(first.rpartition(":")[2].partition("/")[0]))):  # noqa: SIM117
        with PostgresServer(directory=open_directory, durable=False) as database:
            second = database.address
    assert second != first
    with PostgresServer(directory=open_directory, durable=False) as database:
        assert database.address == second


@BOTH
def test_a_directory_given_keeps_the_data_and_the_password(server: Server, open_directory: Path) -> None:
    with server(directory=open_directory, durable=False) as database:
        run(database.address, "CREATE TABLE kept (id INT PRIMARY KEY)", "INSERT INTO kept VALUES (1)")
        password = make_url(database.address).password
    with server(directory=open_directory, durable=False) as again:
        assert make_url(again.address).password == password
        assert run(again.address, "SELECT count(*) FROM kept") == 1


@BOTH
def test_nobody_gets_in_without_the_password(server: Server) -> None:
    with server(durable=False) as database:
        url = make_url(database.address)
        for stranger in (url.set(password="wrong"), url.set(password=""), url.set(username="root")):
            with pytest.raises(OperationalError):
                run(stranger, "SELECT 1")


@BOTH
def test_the_user_may_make_databases_and_users(server: Server) -> None:
    with server(durable=False) as database:
        engine = create_engine(database.address, poolclass=NullPool, isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            connection.execute(text("CREATE DATABASE another"))
            connection.execute(text("CREATE ROLE reader"))
        engine.dispose()
        assert run(make_url(database.address).set(database="another"), "SELECT 1") == 1


def test_settings_reach_postgres_and_durability_is_the_default() -> None:
    with PostgresServer(settings={"work_mem": "7MB"}) as database:
        assert run(database.address, "SHOW work_mem") == "7MB"
        assert run(database.address, "SHOW fsync") == "on"
        assert run(database.address, "SHOW server_encoding") == "UTF8"


def test_settings_reach_mariadb_and_durability_is_the_default() -> None:
    with MariaDBServer(settings={"max-connections": "17"}) as database:
        assert run(database.address, "SELECT @@max_connections") == 17
        assert run(database.address, "SELECT @@innodb_flush_log_at_trx_commit") == 1
        assert run(database.address, "SELECT @@character_set_database") == "utf8mb4"


@BOTH
def test_a_wrong_setting_shows_the_end_of_the_log(server: Server) -> None:
    database = server(settings={"no_such_setting": "1"})
    with pytest.raises(StartError, match=r"no.such.setting"):
        database.start()
    assert not database.running


def test_the_second_start_of_mariadb_fetches_nothing() -> None:
    class Forbidden:
        def fetch(self, artifacts: Sequence[Artifact], into: Path) -> None:
            raise AssertionError(f"{artifacts} were fetched again into {into}")

    def forbidden() -> Fetcher:
        return Forbidden()

    first = fetched_installation()
    assert fetched_installation(fetch_with=forbidden) == first
