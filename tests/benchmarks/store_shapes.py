"""Questions about the shapes of lineage that make answers long: a table that 10,000 others are made from, two tables
that feed each other, a table of 100,000 snapshots, a table that is made from 200, and one that is made from 10,000.

    python -m tests.benchmarks.store_shapes [sqlite|postgresql] [part of full size]

Beside its time stands how many statements a question took: they may grow with the depth of an answer, never with its
edges.
"""

from __future__ import annotations

import gc
import statistics
import sys
import time
from typing import Final

from sqlalchemy import Engine

from tests.benchmarks.harness import Aims
from tests.benchmarks.store_graph import postgres, sqlite
from tests.kit.lineage.graph import put_postgres, put_sqlite
from tests.kit.lineage.shapes import Statements, questions, rows

TIMES: Final = 20


def show(engine: Engine, share: float, aims: Aims) -> None:
    """Print how long each question takes, and how many statements."""
    statements = Statements(engine)
    print(f"\n{engine.dialect.name}{'':<24}{'edges':>9}{'statements':>12}{'p50 ms':>10}{'worst ms':>10}")
    with engine.connect() as connection:
        for shape in questions(share):
            took: list[float] = []
            for _ in range(TIMES):
                before, began = statements.count, time.perf_counter()
                answer = shape.ask(connection)
                took.append((time.perf_counter() - began) * 1000)
                if sum(took) > 20_000:
                    break
            count = statements.count - before
            size = len(answer) if hasattr(answer, "__len__") else 1
            print(
                f"{shape.name:<32}{size:>9,}{count:>12,}{statistics.median(took):>10.1f}{max(took[1:] or took):>10.1f}",
                flush=True,
            )
            if share >= 1:
                aims.at_most(f"{engine.dialect.name}, {shape.name}: worst", max(took[1:] or took), shape.aim, "ms")


def main() -> int:
    databases = {"sqlite": (sqlite, put_sqlite), "postgresql": (postgres, put_postgres)}
    names = [sys.argv[1]] if len(sys.argv) > 1 else list(databases)
    share = float(sys.argv[2]) if len(sys.argv) > 2 else 1.0
    aims = Aims()
    gc.freeze()
    gc.set_threshold(50_000, 50, 50)  # as the commands have it that ask a store
    for name in names:
        opened, put = databases[name]
        with opened() as engine:
            began = time.perf_counter()
            put(engine, rows(share))
            print(f"loaded in {time.perf_counter() - began:.0f} s")
            show(engine, share, aims)
    return aims.report() if share >= 1 else 0


if __name__ == "__main__":
    sys.exit(main())
