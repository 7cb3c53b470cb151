"""A database that is away while events arrive: a writer's memory meanwhile, and how soon all is stored when it is back.

.venv/bin/python -m tests.benchmarks.backlog [events]
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from headwater import local
from headwater.local import PostgresServer
from tests.benchmarks.harness import Aims
from tests.kit.writers.backlog import run_backlog

EVENTS = 200_000
MOST_MORE = 160 << 20


def main(count: int) -> int:
    with tempfile.TemporaryDirectory() as place, local.kafka() as kafka, PostgresServer(durable=False) as server:
        found = run_backlog(Path(place), {"bootstrap.servers": kafka.address}, server, count)
    print(found)
    aims = Aims()
    aims.at_most(
        "more memory while the database is away", (found.peak - found.before) / 2**20, MOST_MORE / 2**20, "MiB"
    )
    return aims.report()


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else EVENTS))
