"""The same events by every way into every database: all of them end in the rows that the law alone gives.

    .venv/bin/python -m tests.benchmarks.equal_stores [events]

Each way runs as the command does, from a local log: the plain pipeline and that of several processes, the events in
their order and shuffled, into SQLite (which several processes can't write), PostgreSQL and MariaDB.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from argparse import ArgumentParser
from collections.abc import Generator, Iterable
from contextlib import ExitStack, contextmanager
from pathlib import Path
from random import Random
from typing import Final

from sqlalchemy import create_engine, make_url

from headwater import local
from headwater.events.avro import Codec
from headwater.journal import LocalLog
from headwater.lineage.mapping import map_event
from headwater.lineage.rows import RowSet
from headwater.lineage.sql import store_digest
from headwater.lineage.store import open_store
from tests.benchmarks.harness import Aims
from tests.kit.events.mixture import events

EVENTS: Final = 200_000
WAYS: Final = {"plain": (), "processes": ("--processes", "2")}
ORDERS: Final = ("in order", "shuffled")


def by_law(count: int) -> str:
    state = RowSet()
    for event in events(count):
        state.merge(map_event(event))
    return state.digest()


def fill(log: Path, data: Iterable[bytes]) -> None:
    with LocalLog.open(log).writer() as writer:
        for each in data:
            writer.append(each)


def written(log: Path, url: str, flags: Iterable[str]) -> tuple[str, float]:
    """Return the digest of what a command wrote, and its seconds."""
    command = [sys.executable, "-m", "headwater.cli", "writer", "run", "--until-end", "--no-maintenance", *flags]
    began = time.perf_counter()
    subprocess.run([*command, "--bus", f"log:{log}", "--store", url], check=True, capture_output=True)
    took = time.perf_counter() - began
    with open_store(url) as store, store.engine.connect() as connection:
        return store_digest(connection), took


@contextmanager
def emptied(address: str) -> Generator[str]:
    """A database of its own on a server."""
    server = create_engine(address, isolation_level="AUTOCOMMIT")
    with server.connect() as connection:
        connection.exec_driver_sql("CREATE DATABASE of_one_way")
        yield make_url(address).set(database="of_one_way").render_as_string(hide_password=False)
        connection.exec_driver_sql("DROP DATABASE of_one_way")
    server.dispose()


def main() -> int:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("events", type=int, nargs="?", default=EVENTS)
    count: int = parser.parse_args().events
    aims, law = Aims(), by_law(count)
    with ExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        data = [Codec().encode(each) for each in events(count)]
        for order in ORDERS:
            fill(place / order, data)
            Random(5).shuffle(data)
        servers = {
            "postgres": stack.enter_context(local.postgres(durable=False)).address,
            "mariadb": stack.enter_context(local.mariadb()).address,
        }
        for database in ("sqlite", *servers):
            for way, flags in WAYS.items() if database != "sqlite" else [("plain", ())]:
                for order in ORDERS:
                    log, name = place / order, f"{database}, {way}, {order}"
                    if database == "sqlite":
                        digest, took = written(log, f"sqlite:///{place}/{way}-{order.split()[0]}.db", flags)
                    else:
                        with emptied(servers[database]) as url:
                            digest, took = written(log, url, flags)
                    print(f"{name:<32}{count / took:10,.0f} events/s, its start included", flush=True)
                    aims.is_true(name, digest == law)
    return aims.report()


if __name__ == "__main__":
    sys.exit(main())
