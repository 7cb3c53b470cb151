"""Processes that write to one store at once: nothing that one tells is lost to another, nobody waits in a circle, and
what is committed is there for everybody."""

from __future__ import annotations

from pathlib import Path

import pytest

from headwater.lineage.store import open_store
from tests.kit.lineage.bulk_writers import Written, digest_in, digest_in_memory, written_by_many
from tests.kit.stores import database_on

pytestmark = pytest.mark.slow

SEED = 7


def check_writers(url: str, number: int, processes: int) -> Written:
    open_store(url).close()
    made = written_by_many(url, SEED, number, processes)
    assert digest_in(url) == digest_in_memory(SEED, number), "an update was lost"
    assert made.invisible == 0, "what was committed wasn't there"
    return made


@pytest.mark.database
@pytest.mark.parametrize(
    ("number", "processes"), [(400, 16), pytest.param(6_000, 16, marks=pytest.mark.long)], ids=["some", "many"]
)
def test_sixteen_processes_on_postgresql(
    request: pytest.FixtureRequest, tmp_path: Path, number: int, processes: int
) -> None:
    with database_on("postgres", request, tmp_path) as url:
        made = check_writers(url.render_as_string(hide_password=False), number, processes)
    assert made.transactions > processes
    assert made.retries == 0, "they waited for each other in a circle"


@pytest.mark.long
@pytest.mark.database
def test_four_processes_on_mariadb(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    with database_on("mariadb", request, tmp_path) as url:
        check_writers(url.render_as_string(hide_password=False), 400, 4)


def test_four_processes_on_sqlite(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    with database_on("sqlite", request, tmp_path) as url:
        check_writers(url.render_as_string(), 400, 4)
