"""The memory of a writer after 10^5 and after 10^7 events: python -m tests.benchmarks.writer_memory [events]

From Kafka into PostgreSQL. So that the disk is enough for it, the rows are removed now and then behind the writer's
back, as whoever may do that does it: the epoch of the store moves with it. What the writer knows, it knows of all.
"""

from __future__ import annotations

import subprocess
import sys
import time

from sqlalchemy import Connection, Engine, create_engine, select
from sqlalchemy.exc import DBAPIError

from headwater import local
from headwater.lineage.bulk.epochs import bump_epoch
from headwater.lineage.rows import KINDS
from headwater.lineage.sql.tables import table_of
from headwater.lineage.sql.writer_tables import OFFSETS
from tests.benchmarks.harness import Aims
from tests.benchmarks.replay import fill
from tests.kit.events.many import encoded_events
from tests.kit.faults.measured import resident

EVENTS = 10_000_000
EARLY = 100_000
ROWS_OF = 500_000
"""Events, after which their rows are removed."""
MOST_GROWTH = 48 << 20
"""From EARLY to the end."""
TOPIC = "many"
_LOOK_SECONDS = 0.2
_MEGABYTE = 1 << 20


class Watch:
    """One writer's memory, by how many events it has stored."""

    def __init__(self, process: subprocess.Popen[bytes], engine: Engine) -> None:
        self._process, self._engine = process, engine
        self.early = self.late = self.stored = 0
        self._reported = self._removed = 0

    def follow(self) -> None:
        began = time.monotonic()
        while self._process.poll() is None:
            memory = resident(self._process.pid)
            with self._engine.connect() as connection:
                self.stored = sum(connection.execute(select(OFFSETS.c.next_offset)).scalars())
            if self.stored <= EARLY:
                self.early = max(self.early, memory)
            self.late = max(self.late, memory)
            if self.stored >= max(10 * self._reported, EARLY):
                self._tell(memory, time.monotonic() - began)
            if self.stored - self._removed >= ROWS_OF:
                self._remove()
            time.sleep(_LOOK_SECONDS)

    def _tell(self, memory: int, seconds: float) -> None:
        rate = self.stored / seconds
        print(f"{self.stored:>12,} events  {memory / _MEGABYTE:6.0f} MB  {rate:,.0f} a second", flush=True)
        self._reported = max(EARLY, 10 * self._reported) if self.stored < 10 * EARLY else self.stored // 10 + EARLY

    def _remove(self) -> None:
        try:
            with self._engine.begin() as connection:
                _remove_all(connection)
        except DBAPIError:  # the writer was in the way: next time
            return
        self._removed = self.stored


def _remove_all(connection: Connection) -> None:
    names = ", ".join(table_of(kind).name for kind in KINDS)
    connection.exec_driver_sql("SET LOCAL lock_timeout = '500ms'")
    connection.exec_driver_sql(f"TRUNCATE {names}")
    bump_epoch(connection)


def main(count: int) -> int:
    with local.kafka() as kafka, local.postgres(durable=False) as postgres:
        fill(kafka.address, TOPIC, 3, ((number % 3, data) for number, data in enumerate(encoded_events(count))))
        print(f"{count:,} events are on the topic", flush=True)
        engine = create_engine(postgres.address, connect_args={"options": "-c search_path=headwater"})
        words = ["--bus", f"kafka://{kafka.address}/{TOPIC}", "--store", postgres.address, "--until-end"]
        subprocess.run(
            [sys.executable, "-m", "headwater.cli", "store", "init", "--store", postgres.address], check=True
        )
        with subprocess.Popen([sys.executable, "-m", "headwater.cli", "writer", "run", *words]) as process:
            watch = Watch(process, engine)
            watch.follow()
        engine.dispose()
    growth = watch.late - watch.early
    print(f"up to {EARLY:,} events {watch.early / _MEGABYTE:.0f} MB, then {growth / _MEGABYTE:+.0f} MB")
    aims = Aims()
    aims.is_true("the writer ended as it should", process.returncode == 0)
    aims.at_most(f"growth after {EARLY:,} events", growth / _MEGABYTE, MOST_GROWTH / _MEGABYTE, "MB")
    return aims.report()


if __name__ == "__main__":
    sys.exit(main(int(float(sys.argv[1])) if len(sys.argv) > 1 else EVENTS))
