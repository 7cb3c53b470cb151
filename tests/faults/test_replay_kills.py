"""A replay that is killed at each step: the live store is as it was, or replaced as a whole, and the next replay is
complete.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import URL, text

from headwater.journal import LocalLog
from headwater.lineage.replacement.areas import Area, drop_area, has_area
from headwater.lineage.store import StoreOptions, open_store
from tests.kit.events.written import digest_in
from tests.kit.stores import database_on
from tests.kit.writers.replay_victim import STEPS
from tests.kit.writers.set_back import append, law, replayed, stored, write_all

pytestmark = [pytest.mark.slow, pytest.mark.long]

DATABASES = [
    "sqlite",
    pytest.param("postgres", marks=pytest.mark.database),
    pytest.param("mariadb", marks=[pytest.mark.database, pytest.mark.sample(2)]),
]
MODULES = {"sqlite": "sqlite", "postgres": "postgresql", "mariadb": "mariadb"}


@pytest.fixture(params=DATABASES)
def database(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def url(database: str, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[URL]:
    with database_on(database, request, tmp_path) as url:
        yield url
        for area in Area:
            drop_area(StoreOptions.at(url.render_as_string(hide_password=False)), area)


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("step", STEPS)
def test_killed_at_a_step(url: URL, database: str, tmp_path: Path, step: str, when: str) -> None:
    address = url.render_as_string(hide_password=False)
    options, log = StoreOptions.at(address), LocalLog.open(tmp_path / "log")
    append(log, 0, 100)
    with open_store(options) as store:
        write_all(log, store)
        with store.engine.begin() as connection:
            connection.execute(text("DELETE FROM writes WHERE snapshot = 7"))
        wrong = digest_in(store)
    right = law(log)
    command = [sys.executable, "-m", "tests.kit.writers.replay_victim", address, str(log.directory), step, when]
    died = subprocess.run([*command, MODULES[database]], capture_output=True, text=True, timeout=120, check=False)
    assert died.returncode == -signal.SIGKILL, died.stderr
    is_replaced = (step, when) in {("rename", "after"), ("fence", "after")}
    with open_store(options) as store:
        assert digest_in(store) == (right if is_replaced else wrong)
        append(log, 100, 150)
        write_all(log, store)
        assert stored(store) == 150
    if is_replaced:
        assert drop_area(options, Area.FORMER)
    assert replayed(log, options).is_switched
    with open_store(options) as store:
        assert digest_in(store) == law(log, "end")
    assert not has_area(options, Area.FRESH)
