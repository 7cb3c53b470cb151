"""A store whose disk is full: it is said, what was accepted stays, and it goes on when there is room again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from headwater.lineage.sql.troubles import StoreFullError, troubles
from headwater.lineage.store import open_store
from tests.faults.small_disk import STAND_IN, kinds, on_small_disk
from tests.faults.test_bus_kills import ROOT
from tests.integration.test_store_opening import TOLD, digest, digest_in_memory, rows_of
from tests.stores import own_database

pytestmark = pytest.mark.slow
KINDS = kinds()
"""A stand-in, and a real small disk where one may be had."""


@pytest.fixture
def place() -> Iterator[Path]:
    """Where another user can get to: a server doesn't run as root."""
    with tempfile.TemporaryDirectory() as directory:
        Path(directory).chmod(0o755)
        yield Path(directory)


def seen(which: str, place: Path, kind: str, size: int) -> dict[str, Any]:
    command = on_small_disk(kind, place, size, 10_000, ["tests.faults.store_disk_victim", which, str(place)])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def check(found: dict[str, Any]) -> None:
    assert found["error"] == "StoreFullError", found
    assert "make room where the database keeps its data, and try again" in found["words"]
    assert found["whole"], "what was accepted is there, and nothing of what was refused"
    assert found["after"], "it goes on"


@pytest.mark.parametrize("kind", KINDS)
def test_the_disk_of_a_sqlite_file_is_full(place: Path, kind: str) -> None:
    if kind == STAND_IN:
        may_not_grow(str(place / "store.db"))
    else:
        check(seen("sqlite", place, kind, 12 << 20))


def may_not_grow(url: str) -> None:
    with open_store(url) as store:
        with store.engine.connect() as connection:
            pages = connection.exec_driver_sql("PRAGMA page_count").scalar_one()
            connection.exec_driver_sql(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(StoreFullError, match="make room"):
            store.merge(rows_of(TOLD))
        assert digest(store) == digest_in_memory([])


@pytest.mark.database
@pytest.mark.parametrize("kind", [each for each in KINDS if each != "user"])
def test_the_disk_of_a_postgresql_is_full(request: pytest.FixtureRequest, place: Path, kind: str) -> None:
    """In a name space of a user's own everybody is root, whom no server runs for."""
    if kind == STAND_IN:
        with own_database(request.getfixturevalue("postgres")) as url:
            says_so(url)
    else:
        check(seen("postgres", place, kind, 40 << 20))


def says_so(url: str) -> None:
    def full() -> None:
        with troubles("it"), store.engine.begin() as connection:
            connection.execute(text("UPDATE jobs SET last = 0"))
            connection.execute(
                text("DO $$ BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = 'disk_full'; END $$")
            )

    with open_store(url) as store:
        store.merge(rows_of(TOLD))
        with pytest.raises(StoreFullError, match="make room"):
            full()
        assert digest(store) == digest_in_memory(TOLD)
