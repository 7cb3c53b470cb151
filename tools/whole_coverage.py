"""A plugin of pytest for `make test`: what a process that was killed left of its coverage is left out.

Coverage's files are databases that are written without a journal, so a kill -9 leaves any part of one; and what only
shows when they are put together ends the whole run.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Generator
from contextlib import closing
from pathlib import Path

import pytest

_TABLES = ("coverage_schema", "meta", "file", "context", "line_bits", "arc", "tracer")


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtestloop(session: pytest.Session) -> Generator[None, object, object]:
    """The innermost wrapper: pytest-cov puts the files together in its own, further out."""
    result = yield
    if not hasattr(session.config, "workerinput"):
        remove_broken(session.config.rootpath)
    return result


def remove_broken(directory: Path) -> list[Path]:
    """The files of coverage that can't be read to their end; they are gone then."""
    broken = [path for path in sorted(directory.glob(".coverage.*")) if not _is_whole(path)]
    for path in broken:
        path.unlink(missing_ok=True)
    return broken


def _is_whole(path: Path) -> bool:
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as database:
            for table in _TABLES:
                database.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchone()  # noqa: S608 - names of our own
            return bool(database.execute("PRAGMA quick_check").fetchone() == ("ok",))
    except sqlite3.Error:
        return False
