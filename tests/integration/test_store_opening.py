"""Opening stores in real databases: who makes them, who brings them to a newer version, and what is refused."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import create_engine, inspect, text, update

from headwater.lineage.sql import METADATA, store_digest
from headwater.lineage.sql.errors import StoreRightsError, StoreSchemaError, translate_errors
from headwater.lineage.store import open_store
from headwater.lineage.store.creation import VERSION
from headwater.lineage.store.engines import engine_for
from headwater.lineage.store.options import StoreOptions
from tests.kit.lineage.reported_store import REPORTED, digest, digest_in_memory, rows_of

pytestmark = pytest.mark.slow

OPENER = """
import sys
from headwater.lineage.store import open_store
print("ready", flush=True)
url = sys.stdin.readline().strip()
with open_store(url) as store, store.engine.connect() as connection:
    print(connection.exec_driver_sql("SELECT count(*) FROM schema_version").scalar(), flush=True)
"""


def marked(url: str, version: str, least: str) -> None:
    """As newer code would leave it."""
    engine = engine_for(StoreOptions.at(url).target)
    with engine.begin() as connection:
        connection.execute(update(VERSION).values(version_num=version, least=least))
    engine.dispose()


def test_a_file_is_read_by_its_owner_alone(tmp_path: Path) -> None:
    """What a store knows of jobs, users and errors is nobody else's; what is shared on purpose stays as it is."""
    file, shared = tmp_path / "lineage.db", tmp_path / "shared.db"
    shared.touch(mode=0o664)
    shared.chmod(0o664)
    for place, mode in ((file, 0o600), (shared, 0o664)):
        with open_store(f"sqlite:///{place}") as store:
            store.merge(rows_of(REPORTED))
            modes = {each.name: each.stat().st_mode & 0o777 for each in tmp_path.glob(f"{place.name}*")}
        assert modes == {f"{place.name}{end}": mode for end in ("", "-wal", "-shm")}


def test_it_is_made_once_and_holds_what_it_is_reported(place: str) -> None:
    with open_store(place) as store:
        assert store.merge(rows_of(REPORTED)) > 50
    with open_store(place) as again:
        assert digest(again) == digest_in_memory(REPORTED)
    with open_store(place, readonly=True) as reader:
        assert digest(reader) == digest_in_memory(REPORTED)


def test_all_statements_of_a_question_see_one_state(place: str) -> None:
    """Fails if an answer says that it is complete up to an event that was stored while its rows were read."""
    with open_store(place) as writer, open_store(place, readonly=True) as reader:
        writer.merge(rows_of(REPORTED[:-1]))
        with reader.engine.connect() as connection:
            before = store_digest(connection)
            writer.merge(rows_of(REPORTED[-1:]))
            assert store_digest(connection) == before
        assert digest(reader) == digest(writer) != before


def test_readers_are_refused_to_write(place: str) -> None:
    open_store(place).close()
    with open_store(place, readonly=True) as reader, pytest.raises(StoreRightsError):
        reader.merge(rows_of(REPORTED[:1]))


def test_not_even_by_a_fault_of_ours_a_reader_writes_a_file(tmp_path: Path) -> None:
    open_store(str(tmp_path / "store.db")).close()
    with open_store(str(tmp_path / "store.db"), readonly=True) as reader, reader.engine.connect() as connection:
        connection.exec_driver_sql("PRAGMA query_only = OFF")
        with pytest.raises(StoreRightsError), translate_errors("it"):
            connection.exec_driver_sql("DELETE FROM jobs")


@pytest.mark.parametrize("readonly", [True, False])
def test_where_nothing_is_to_be_made_the_command_is_reported(place: str, readonly: bool) -> None:
    with pytest.raises(StoreSchemaError, match="headwater store init --store"):
        open_store(place, readonly=readonly, create=readonly)
    if "://" in place:
        engine = create_engine(place)
        assert inspect(engine).get_table_names() == []
        engine.dispose()
    else:
        assert not Path(place).exists()


def test_many_who_open_an_empty_store_at_once(place: str) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    openers = [
        subprocess.Popen([sys.executable, "-c", OPENER], env=environment, text=True, **pipes)  # type: ignore[call-overload]
        for _ in range(5)
    ]
    try:
        for opener in openers:
            assert opener.stdout is not None
            assert opener.stdout.readline() == "ready\n"
        for opener in openers:
            assert opener.stdin is not None
            opener.stdin.write(f"{place}\n")
            opener.stdin.flush()
        ended = [opener.communicate(timeout=120) for opener in openers]
    finally:
        for opener in openers:
            opener.kill()
            opener.wait()
    assert ended == [("1\n", "")] * 5
    with open_store(place, create=False) as store:
        assert digest(store) == digest_in_memory([])


def test_newer_tables_from_which_nothing_was_taken_away_are_used(place: str) -> None:
    open_store(place).close()
    marked(place, "9999", least="0001")
    with open_store(place) as store:
        store.merge(rows_of(REPORTED))
        assert digest(store) == digest_in_memory(REPORTED)


def test_newer_tables_are_refused_otherwise(place: str) -> None:
    open_store(place).close()
    marked(place, "9999", least="9998")
    for readonly in (False, True):
        with pytest.raises(StoreSchemaError, match=r"at version 9999.*install that one here too"):
            open_store(place, readonly=readonly)


def test_tables_of_somebody_else_are_left_alone(place: str) -> None:
    engine = engine_for(StoreOptions.at(place).target)
    with engine.begin() as connection:
        if engine.dialect.name == "postgresql":
            connection.execute(text("CREATE SCHEMA headwater"))
        connection.execute(text("CREATE TABLE jobs (title VARCHAR(10))"))
    with pytest.raises(StoreSchemaError, match=r"jobs that isn't headwater's.*a database of its own"):
        open_store(place)
    assert inspect(engine).get_table_names() == ["jobs"]
    engine.dispose()


def test_a_store_that_was_not_made_to_its_end_is(place: str) -> None:
    """MariaDB keeps the tables that were made before a process died."""
    engine = engine_for(StoreOptions.at(place).target)
    with engine.begin() as connection:
        if engine.dialect.name == "postgresql":
            connection.execute(text("CREATE SCHEMA headwater"))
        METADATA.create_all(connection, tables=[METADATA.tables[name] for name in ("jobs", "commits")])
    engine.dispose()
    with open_store(place) as store:
        store.merge(rows_of(REPORTED))
        assert digest(store) == digest_in_memory(REPORTED)


def test_a_place_that_cannot_be(tmp_path: Path) -> None:
    with pytest.raises(Exception, match="there is no directory"):
        open_store(str(tmp_path / "nowhere" / "store.db"))
    with pytest.raises(Exception, match="is a directory"):
        open_store(str(tmp_path))
    (tmp_path / "letter.txt").write_text("Dear Sir or Madam, " * 100)
    with pytest.raises(Exception, match="file is not a database"):
        open_store(str(tmp_path / "letter.txt"))
    assert (tmp_path / "letter.txt").read_text().startswith("Dear Sir")
