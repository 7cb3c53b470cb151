"""One process and several, from one topic into one PostgreSQL, in turns.

    python -m tests.benchmarks.pipelines [events [rounds [flags of the coordinated one …]]]

Each turn is `headwater writer run --until-end` with a group and a database of its own over the same topic, from its
start to its end; what it takes with one event on a topic is taken away. PostgreSQL doesn't wait for its disk (fsync
is off): the pipelines are compared, not the disk. Beside the rates stand the seconds of processor time of
the writer and of the database, which say where it goes, and mean the same on a machine that has other things to do.
Whatever waits for a lock longer than 10 ms is in the server's log; none may wait for a row.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import time
import uuid
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from sqlalchemy import Connection, create_engine, make_url

from headwater import local
from headwater.events.avro import Codec
from headwater.events.keys import key_of
from headwater.lineage.sql import store_digest
from headwater.lineage.store import open_store
from tests.benchmarks.harness import Aims, fsync_words
from tests.benchmarks.writing import AT_ONCE, produce
from tests.kit.events.mixture import events
from tests.kit.waiting import until

EVENTS: Final = 60_000
ROUNDS: Final = 3
AIM: Final = 1.3
AIM_OF_CLIENTS: Final = 1.1
_TICK: Final = os.sysconf("SC_CLK_TCK")
_COORDINATED: Final = ("--processes", "2")


class Took(NamedTuple):
    wall: float
    writer: float
    database: float
    digest: str


def turn(address: str, server: str, topic: str, flags: Sequence[str]) -> Took:
    name = f"turn_{uuid.uuid4().hex}"
    engine = create_engine(server, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.exec_driver_sql(f"CREATE DATABASE {name}")
        connection.exec_driver_sql(f"ALTER DATABASE {name} SET log_lock_waits = on")
        connection.exec_driver_sql(f"ALTER DATABASE {name} SET deadlock_timeout = '10ms'")
        url = make_url(server).set(database=name).render_as_string(hide_password=False)
        open_store(url).close()
        before, children, began = cpu_of_database(connection), cpu_of_children(), time.perf_counter()
        command = [sys.executable, "-m", "headwater.cli", "writer", "run", "--until-end", "--batch", str(AT_ONCE)]
        place = ["--bus", f"kafka://{address}/{topic}", "--store", url, "--group", name]
        subprocess.run([*command, *place, *flags], check=True, capture_output=True)
        wall = time.perf_counter() - began
        until(lambda: not has_processes(name))  # one that ends while times are added up is counted nowhere
        took = cpu_of_database(connection) - before
        with open_store(url, readonly=True) as store, store.engine.connect() as asked:
            digest = store_digest(asked)
        connection.exec_driver_sql(f"DROP DATABASE {name} WITH (FORCE)")
    engine.dispose()
    return Took(wall, cpu_of_children() - children, took, digest)


def has_processes(database: str) -> bool:
    """Whether a server has processes for a database: their titles name it."""
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            title = each.read_text(errors="replace")
            if title.startswith("postgres: ") and database in title:
                return True
    return False


def cpu_of_children() -> float:
    """Of those that have ended, and of theirs."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def cpu_of_database(connection: Connection) -> float:
    """Of the server and all that it began, those that have ended too."""
    postmaster = int(Path(data_directory(connection), "postmaster.pid").read_text().splitlines()[0])
    total = sum(_cpu(postmaster, at) for at in (11, 12, 13, 14))
    for status in Path("/proc").glob("[0-9]*/stat"):
        if _parent(status) == postmaster:
            total += sum(_cpu(int(status.parent.name), at) for at in (11, 12))
    return total / _TICK


def cpu_of_tree(process: int) -> float:
    """Of a process and all below it, those that have ended and were waited for too."""
    total = sum(_cpu(process, at) for at in (11, 12, 13, 14)) / _TICK
    below = [int(each.parent.name) for each in Path("/proc").glob("[0-9]*/stat") if _parent(each) == process]
    return total + sum(cpu_of_tree(each) for each in below)


def data_directory(connection: Connection) -> str:
    return str(connection.exec_driver_sql("SHOW data_directory").scalar_one())


def _fields(process: int) -> list[str]:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def _parent(status: Path) -> int:
    fields = _fields(int(status.parent.name))
    return int(fields[1]) if fields else 0


def _cpu(process: int, at: int) -> int:
    fields = _fields(process)
    return int(fields[at]) if fields else 0


def main(count: int, rounds: int, flags: Sequence[str]) -> int:
    """Print the turns and the ratio; 1 if the aim is missed."""
    codec = Codec()
    data, keys = [], []
    for each in events(count):
        data.append(codec.encode(each))
        keys.append(key_of(each))
    ways: dict[str, Sequence[str]] = {"plain": (), "coordinated": flags or _COORDINATED}
    found: dict[str, list[Took]] = {way: [] for way in ways}
    with local.kafka() as kafka, local.postgres(durable=False) as postgres:
        print(fsync_words(postgres.address), f"load of the machine {os.getloadavg()[0]:.1f}")
        full, one = f"full-{uuid.uuid4()}", f"one-{uuid.uuid4()}"
        produce(kafka.address, full, data, keys)
        produce(kafka.address, one, data[:1])
        idle = {way: turn(kafka.address, postgres.address, one, ways[way]) for way in ways}
        for number in range(rounds):
            for way in ways if number % 2 else reversed(ways):
                took = turn(kafka.address, postgres.address, full, ways[way])
                found[way].append(_without(took, idle[way]))
                _say(way, found[way][-1], count)
        said = [line.partition("still waiting for ")[2] for line in postgres.log_tail(1 << 30).splitlines()]
    if len({each.digest for turns in found.values() for each in turns}) != 1:
        raise SystemExit("they don't end in the same rows: their times mean nothing")
    waits = [each for each in said if " on transaction " in each or " on tuple " in each]
    print(f"waits for rows: {len(waits)}; for other locks, as when a table grows: {sum(map(bool, said)) - len(waits)}")
    pairs = list(zip(found["plain"], found["coordinated"], strict=True))
    ratio = statistics.median(plain.wall / other.wall for plain, other in pairs)
    client = statistics.median(other.writer / plain.writer for plain, other in pairs)
    used = statistics.median((a.writer + a.database) / (b.writer + b.database) for a, b in pairs)
    print(f"coordinated: {used:.2f} of plain's events for a second of processor time, database and all")
    aims = Aims()
    aims.at_least("coordinated, of the rate of plain", ratio, AIM)
    aims.at_most("its clients, of plain's processor time", client, AIM_OF_CLIENTS)
    aims.at_most("waits for rows", len(waits), 0)
    return aims.report()


def _without(took: Took, idle: Took) -> Took:
    wall, writer, database = (max(1e-9, a - b) for a, b in zip(took[:3], idle[:3], strict=True))
    return Took(wall, writer, database, took.digest)


def _say(way: str, took: Took, count: int) -> None:
    busy = (took.writer + took.database) / took.wall
    times = f"{took.wall:>7.2f} s  writer {took.writer:>6.2f} s  database {took.database:>6.2f} s  {busy:>5.2f} busy"
    print(f"{way:<12}{count / took.wall:>10,.0f} events/s {times}  load {os.getloadavg()[0]:.1f}", flush=True)


if __name__ == "__main__":
    given = sys.argv[1:]
    sys.exit(main(int(given[0]) if given else EVENTS, int(given[1]) if len(given) > 1 else ROUNDS, given[2:]))
