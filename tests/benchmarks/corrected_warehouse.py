"""An order shop is corrected while its production goes on, and what that costs.

    python -m tests.benchmarks.corrected_warehouse --format delta --queries 1000

Production (ingestion and two jobs), a reader that joins tables under `spark.headwater.read.consistent`, and the
commands of the correction are processes of their own. In the end each table has to be, row by row, what it would be
without the error; that is worked out without Spark. The reader's answers are compared with what the tables hold after
each commit to the orders, with and without the error, so that a mixture shows, and a total that goes back and up again.

What has to hold is the exit code; what it costs is printed. It runs on the Spark that is installed beside it.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from sqlalchemy import and_, func, select

from headwater import local
from headwater.cli.service import ended_by_sigterm
from headwater.events.names import VALIDATION_JOB_NAMESPACE
from headwater.lineage.rows import tables as t
from headwater.lineage.sql.tables import table_of
from headwater.lineage.store import open_store
from tests.benchmarks.harness import Aims
from tests.kit.cases.corrections import TABLES
from tests.kit.cases.order_shop import CHAIN, OrderBook, Production, Shop, is_data_file
from tests.kit.cases.shop_reader import SeenByReader, judge
from tests.kit.checkout import ROOT
from tests.kit.drivers import PYTHON, ProcessGroup
from tests.kit.spark.versions import SPARK
from tests.kit.waiting import until

FORMATS: Final = ("iceberg", "delta", "paimon")
SECONDS: Final = 3_600
SHOWN: Final = 3


@dataclass
class Figures:
    """What a correction took."""

    seconds: dict[str, float] = field(default_factory=dict)
    mirror_bytes: dict[str, int] = field(default_factory=dict)
    switch_bytes: dict[str, int] = field(default_factory=dict)
    new_commits: dict[str, int] = field(default_factory=dict)
    """How many commits each table of production got by the switch."""
    switch_span: float = 0.0
    """Seconds between the first table's commit and the last one's."""
    read: list[tuple[str, int, int]] = field(default_factory=list)
    """The jobs that ran on mirrors, each with how often it committed and how many rows it read."""

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        began = time.monotonic()
        yield
        self.seconds[name] = self.seconds.get(name, 0.0) + time.monotonic() - began
        print(f"{name}: {self.seconds[name]:.1f} s", file=sys.stderr, flush=True)


class Reader:
    """The reader's process, which asks until it is ended, and at least so often."""

    def __init__(self, shop: Shop, queries: int, held: ExitStack) -> None:
        self._answers, log = shop.folder / "answers.jsonl", shop.folder / "reader.log"
        self._log = log
        self._process = held.enter_context(
            ProcessGroup(
                [PYTHON, "-m", "tests.kit.cases.shop_reader", shop.database, shop.store, str(queries)],
                cwd=ROOT,
                env=shop.place.environment,
                stdin=subprocess.PIPE,
                stdout=held.enter_context(self._answers.open("w")),
                stderr=held.enter_context(log.open("w")),
                text=True,
                start_new_session=True,
            )
        )
        until(self._has_asked, "the reader's first answer", seconds=300, pause=0.5)

    def _has_asked(self) -> bool:
        assert self._process.poll() is None, self._log.read_text()[-3000:]
        return '"answer"' in self._answers.read_text()

    def end(self) -> list[str]:
        """Let the reader come to its end, and return its answers."""
        self._process.communicate(timeout=SECONDS)
        assert self._process.returncode == 0, self._log.read_text()[-3000:]
        return [line for line in self._answers.read_text().splitlines() if line.startswith("{")]


def correct(shop: Shop, production: Production, mode: str) -> Figures:
    """Correct the shop while its production goes on, and switch it while production pauses."""
    figures, source = Figures(), f"{shop.database}.orders@{shop.wrong_snapshot()}"
    more = [] if mode == "full" else ["--mode", mode]
    before = shop.files()
    with figures.timed("begin"):
        name = str(shop.correct("begin", source, *more)["correction"])
    figures.mirror_bytes = _new_bytes(before, shop.files())
    production.go_on_for_long()
    with figures.timed("sql"):
        shop.correct("sql", name, shop.book.repair(shop.database, shop.using))
    with figures.timed("run while production goes on"):
        shop.correct("run", name, "--rounds", "1")
    with figures.timed("production stands still"):
        production.pause()
        with figures.timed("last run"):
            assert shop.correct("run", name)["is_up_to_date"]
        heads, before = {table: shop.commits(table) for table in TABLES}, shop.files()
        with figures.timed("switch"):
            shop.correct("switch", name, "--yes")
    after = {table: shop.commits(table) for table in TABLES}
    for table, commits in heads.items():
        assert after[table][: len(commits)] == commits, f"{table} lost commits: {commits}, {after[table]}"
        figures.new_commits[table] = len(after[table]) - len(commits)
    figures.switch_bytes = _new_bytes(before, shop.files())
    figures.read = read_on_mirrors(shop.store)
    times = [after[table][-1].seconds for table in CHAIN]
    figures.switch_span = max(times) - min(times)
    return figures


def _new_bytes(before: Mapping[str, tuple[int, int]], after: Mapping[str, tuple[int, int]]) -> dict[str, int]:
    """Return how many bytes of data files and of other files there are that weren't there."""
    found = {"data": 0, "metadata": 0}
    for path in after.keys() - before.keys():
        found["data" if is_data_file(path) else "metadata"] += after[path][0]
    return found


def read_on_mirrors(store: str) -> list[tuple[str, int, int]]:
    """Return the jobs that ran on mirrors, each with how often it committed and how many rows it read."""
    read, commit = table_of(t.READ).c, table_of(t.COMMIT).c
    of_commit = and_(read.commit_id == commit.id, read.barrier == commit.barrier)
    counted = select(commit.job, func.count(commit.id.distinct()), func.sum(read.row_count)).where(
        of_commit, commit.job_namespace == VALIDATION_JOB_NAMESPACE, commit.job.not_like("headwater correct%")
    )
    with open_store(store) as opened, opened.engine.connect() as connection:
        found = connection.execute(counted.group_by(commit.job).order_by(commit.job))
        return [(job, commits, int(rows or 0)) for job, commits, rows in found]


@contextmanager
def shop_of(form: str, book: OrderBook) -> Iterator[Shop]:
    """Yield an empty shop with its servers."""
    with (
        tempfile.TemporaryDirectory() as directory,
        local.postgres(durable=False) as store,
        local.postgres(durable=False) as metastore,
    ):
        open_store(store.address).close()
        yield Shop(Path(directory), local.java().home, form, (store.address, metastore.address), book)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--format", choices=FORMATS, default="iceberg")
    parser.add_argument("--mode", choices=("full", "incremental"), default="full")
    parser.add_argument("--queries", type=int, default=1_000, help="that the reader asks at least")
    parser.add_argument("--orders", type=int, default=200, help="in each commit")
    given = parser.parse_args()
    book = OrderBook(given.orders)
    with (
        ended_by_sigterm(),
        shop_of(given.format, book) as shop,
        Production(shop).started() as production,
        ExitStack() as held,
    ):
        production.open_shop()
        reader = Reader(shop, given.queries, held)
        figures = correct(shop, production, given.mode)
        for _ in range(2):
            production.go_on()
        answers = reader.end()
        rows = shop.look()["production"]
        truth = book.rows(production.orders, right=True)
        seen, plain = (judge(answers, book, production.orders, plain=each) for each in (False, True))
        return report(given, figures, seen, plain, differences(rows, truth))


def differences(rows: dict[str, list[tuple[object, ...]]], truth: dict[str, list[tuple[object, ...]]]) -> list[str]:
    """Return the tables that aren't what they have to be, with some of what differs."""
    found = []
    for table in TABLES:
        there, right = rows[table], sorted(truth[table])
        if there != right:
            wrong = [row for row in there if row not in right][:SHOWN]
            missing = [row for row in right if row not in there][:SHOWN]
            found.append(f"{table}: {len(there)} rows of {len(right)}; wrong {wrong}, missing {missing}")
    return found


def report(
    given: argparse.Namespace, figures: Figures, seen: SeenByReader, plain: SeenByReader, different: list[str]
) -> int:
    print(f"{given.format}, {given.mode}, Spark {SPARK}, {given.orders} orders a commit, load {os.getloadavg()[0]:.1f}")
    for name, seconds in figures.seconds.items():
        print(f"  {name:<32}{seconds:8.1f} s")
    print(f"  {'first to last switched table':<32}{figures.switch_span:8.1f} s")
    for name, added in (("mirrors", figures.mirror_bytes), ("the switch", figures.switch_bytes)):
        print(f"  {name} added {added['data']:,} bytes of data files and {added['metadata']:,} of metadata")
    for job, commits, rows in figures.read:
        print(f"  on mirrors {job} read {rows:,} rows for {commits} commits")
    p50, p99 = seen.latency
    print(f"  reader: {seen.queries:,} queries, p50 {p50 * 1e3:.0f} ms, p99 {p99 * 1e3:.0f} ms; {dict(seen.worlds)}")
    print(f"  without consistent reads: {plain.queries:,} queries, {len(plain.mixtures):,} mixtures")
    for text, count in seen.errors.most_common(SHOWN):
        print(f"    {count} x {text}")
    for each in (*seen.mixtures[:SHOWN], *seen.backward[:SHOWN], *different):
        print(f"    WRONG: {each}")
    aims = Aims()
    aims.at_least("queries", seen.queries, given.queries)
    aims.at_most("mixtures", len(seen.mixtures), 0)
    aims.at_least("mixtures without consistent reads, so that it shows", len(plain.mixtures), 1)
    aims.at_most("totals that go back", len(seen.backward), 0)
    aims.at_most("queries that ended with an error", sum(seen.errors.values()), 0)
    aims.at_least("answers with the error", seen.worlds["with it"], 1)
    aims.at_least("answers without it", seen.worlds["without it"], 1)
    aims.is_true("all tables are those of a history without the error", not different)
    for table, count in figures.new_commits.items():
        aims.is_true(f"commits of {table} by the switch: {count}", count == (table in CHAIN))
    aims.at_most("bytes of data files that mirrors copy", figures.mirror_bytes["data"], 0)
    return aims.report()


if __name__ == "__main__":
    sys.exit(main())
