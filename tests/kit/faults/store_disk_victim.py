"""A store whose disk is full, in a process of its own on a file system of its own; what it saw is its last line.

python -m tests.kit.faults.store_disk_victim sqlite|postgres DIRECTORY
"""

from __future__ import annotations

import json
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import create_engine, make_url, text

from headwater.errors import TransientError
from headwater.lineage.rows import Row, RowSet
from headwater.lineage.sql import store_digest
from headwater.lineage.store import open_store
from headwater.local import PostgresServer
from headwater.local.system_user import change_owner, find_unprivileged_user
from tests.kit.faults.small_disk import SmallDisk
from tests.kit.lineage.commit_rows import commit_row

_AT_ONCE, _MOST = 200, 500


def rows_of(number: int) -> list[Row]:
    """A batch of commits, with words that don't compress."""
    several = range(number * _AT_ONCE, (number + 1) * _AT_ONCE)
    return [commit_row(each, f"job{each}", committed_at=each, operation=f"{each:032x}" * 8) for each in several]


def experience(url: str, disk: SmallDisk, left: int) -> dict[str, Any]:
    state, emitted = RowSet(), 0
    with open_store(url) as store:
        store.merge(rows_of(0))
        state.merge(rows_of(0))
        disk.fill(left)
        error: Exception | None = None
        for emitted in range(1, _MOST):
            try:
                store.merge(rows_of(emitted))
            except TransientError as e:
                error = e
                break
            state.merge(rows_of(emitted))
        with store.engine.connect() as connection:
            while_full = store_digest(connection) == state.digest()
        disk.free()
        store.merge(rows_of(emitted))
        state.merge(rows_of(emitted))
        with store.engine.connect() as connection:
            after = store_digest(connection) == state.digest()
    return {"error": type(error).__name__, "words": str(error), "whole": while_full, "after": after, "told": emitted}


@contextmanager
def on_postgres(place: Path) -> Generator[str]:
    """A database in the small place, its server elsewhere: where a server can't write its log, it ends itself."""
    small = place / "tables"
    small.mkdir()
    place.chmod(0o755)
    change_owner(small, find_unprivileged_user())
    with PostgresServer(durable=False) as server:
        root = create_engine(server.address, isolation_level="AUTOCOMMIT")
        with root.connect() as connection:
            connection.execute(text(f"CREATE TABLESPACE small LOCATION '{small}'"))
            connection.execute(text("CREATE DATABASE lineage TABLESPACE small"))
        root.dispose()
        yield make_url(server.address).set(database="lineage").render_as_string(hide_password=False)


def main(which: str, directory: str) -> None:
    place = Path(directory)
    disk = SmallDisk(place)
    if which == "sqlite":
        seen = experience(str(place / "store.db"), disk, 256 << 10)
    else:
        with on_postgres(place) as url:
            seen = experience(url, disk, 256 << 10)
    print(json.dumps(seen))


if __name__ == "__main__":
    main(*sys.argv[1:])
