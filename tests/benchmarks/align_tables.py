"""`python -m tests.benchmarks.align_tables`: how long `align` of ten tables takes in a large store.

The store is that of `tests.kit.lineage.graph`. Into it come ten tables that read the same sources again and again; some
are behind, so that the newest versions don't belong together. With `--append` none of them is ever overwritten: their
histories are as long as there are rounds.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import tempfile
import time
from collections.abc import Callable

from sqlalchemy import Connection, Engine, create_engine, event, text

from headwater import local
from headwater.lineage.sql import METADATA
from headwater.versions import align, check
from tests.kit.lineage.aligned_tables import TABLES, everything
from tests.kit.lineage.graph import (
    Graph,
    Size,
    put_postgres,
    put_sqlite,
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--edges", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=500, help="commits of each of the ten tables")
    parser.add_argument("--append", action="store_true", help="none of them is ever overwritten")
    parser.add_argument("--repeats", type=int, default=100)
    parser.add_argument("--sqlite", action="store_true")
    given = parser.parse_args()
    graph = Graph(Size(tables=given.edges // 200, jobs=given.edges // 1_000, edges=given.edges))
    with tempfile.TemporaryDirectory() as directory:
        if given.sqlite:
            _measure(f"sqlite:///{directory}/store.db", graph, given)
        else:
            with local.postgres(durable=False) as server:
                _measure(server.address, graph, given)


def _measure(url: str, graph: Graph, given: argparse.Namespace) -> None:
    engine = create_engine(url)
    METADATA.create_all(engine)
    put = put_sqlite if given.sqlite else put_postgres
    put(engine, everything(graph, given.rounds, append=given.append))
    with engine.begin() as connection:
        connection.execute(text("ANALYZE"))
    names = [f"lake.mart.m{graph.size.tables + mart}" for mart in range(TABLES)]
    form = "append" if given.append else "overwritten every 20"
    print(f"{graph.edges} edges, {given.rounds} commits each ({form})")
    gc.freeze()  # the graph that the store was filled from isn't a user's
    trip = statistics.median(_times(engine, lambda connection: connection.scalar(text("SELECT 1")), 1000))
    newest: dict[str, int | None] = {}

    def check_newest(connection: Connection) -> None:
        check(connection, newest)

    for name, ask in {"align": lambda connection: align(connection, names), "check": check_newest}.items():
        statements = _Statements(engine)
        began = time.process_time()
        took = sorted(_times(engine, ask, given.repeats))
        busy = (time.process_time() - began) * 1000 / (given.repeats + 1)
        statements.stop()
        p99 = took[min(len(took) - 1, int(len(took) * 0.99))]
        each = statements.count / (given.repeats + 1)
        print(
            f"{name} of {TABLES} tables: p50 {statistics.median(took):.1f} ms, p99 {p99:.1f} ms, {len(took)} times, "
            f"the shortest {took[0]:.1f}, of the processor {busy:.1f}; {each:.0f} statements, which alone take "
            f"{each * trip:.1f} ms"
        )
        with engine.connect() as connection:
            answer = align(connection, names)
        newest |= {name: each.table.snapshot for name, each in zip(names, answer.rows, strict=True)}
        print(f"  behind {sorted(each.steps_behind for each in answer.rows)}")
    engine.dispose()


def _times(engine: Engine, ask: Callable[[Connection], object], repeats: int) -> list[float]:
    """How many milliseconds an answer takes each time but the first, when statements are prepared."""
    took = []
    for _ in range(repeats + 1):
        with engine.connect() as connection:
            began = time.perf_counter()
            ask(connection)
            took.append((time.perf_counter() - began) * 1000)
    return took[1:]


class _Statements:
    """Counts what is executed."""

    def __init__(self, engine: Engine) -> None:
        self._engine, self.count = engine, 0
        event.listen(engine, "before_cursor_execute", self._add)

    def _add(self, *_: object) -> None:
        self.count += 1

    def stop(self) -> None:
        event.remove(self._engine, "before_cursor_execute", self._add)


if __name__ == "__main__":
    main()
