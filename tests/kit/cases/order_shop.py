"""A shop whose production goes on while an error in its orders is corrected: five tables, two jobs, and what each table
has to hold after any number of orders, worked out without Spark.

    orders, products -> details -> revenue, top10
"""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

from sqlalchemy.engine import make_url

from tests.kit.cases.corrections import STATEMENTS, STORY, CorrectedPlace, created
from tests.kit.cases.validation import FORMATS, HEADWATER, SECONDS
from tests.kit.drivers import ProcessGroup
from tests.kit.formats.iceberg_truth import metadata_at
from tests.kit.spark.driver import JDBC, Extensions

Rows = list[tuple[Any, ...]]
PRODUCTS: Final = 15
TOP: Final = 10
WRONG_COMMIT: Final = 3
"""Which commit to the orders is the wrong one. What came before and after is right."""
TIMES_TOO_MUCH: Final = 1_000
WRONG_EVERY: Final = 10
PAUSE: Final = 2.0
"""Seconds between the end of all jobs and the next orders."""
CHAIN: Final = ("orders", "details", "revenue", "top10")
ANEW: Final = {
    **STATEMENTS,
    "details": "INSERT OVERWRITE {db}.details SELECT o.id, p.name, o.amount * p.price AS total "
    "FROM {db}.orders o JOIN {db}.products p ON o.product = p.id",
}
"""How each table is made from all rows of its sources. Details that get rows from time to time hold several states of
the orders, and belong together with none."""


@dataclass(frozen=True)
class OrderBook:
    """What the tables hold when each commit to the orders has so many."""

    commit_rows: int

    def ids(self, commit: int) -> range:
        """Return the orders of a commit; the first one is 1."""
        return range((commit - 1) * self.commit_rows + 1, commit * self.commit_rows + 1)

    def rows(self, commits: int, *, right: bool) -> dict[str, Rows]:
        """Return all tables after so many commits to the orders, as they are with the error or without it."""
        orders = [_order(id_) for commit in range(1, commits + 1) for id_ in self.ids(commit)]
        if not right:
            wrong = {id_ for id_ in self.ids(WRONG_COMMIT) if id_ % WRONG_EVERY == 0}
            orders = [(id_, p, n * TIMES_TOO_MUCH) if id_ in wrong else (id_, p, n) for id_, p, n in orders]
        products = [_product(number) for number in range(1, PRODUCTS + 1)]
        known = {number: (name, price) for number, name, price in products}
        details = [(id_, known[product][0], amount * known[product][1]) for id_, product, amount in orders]
        by_name: dict[str, int] = defaultdict(int)
        for _, name, total in details:
            by_name[name] += total
        best = sorted(by_name.items(), key=lambda each: (-each[1], each[0]))[:TOP]
        revenue = [(sum(total for *_, total in details), len(details))]
        return {
            "orders": orders,
            "products": products,
            "details": details,
            "revenue": revenue,
            "top10": sorted(best),
        }

    def opening(self, database: str, using: str) -> list[str]:
        """Return the statements that make the tables, and the products."""
        products = ", ".join(str(_product(number)) for number in range(1, PRODUCTS + 1))
        return [*created(database, using), f"INSERT INTO {database}.products VALUES {products}"]

    def insert(self, database: str, commit: int) -> str:
        """Return the statement of a commit to the orders."""
        wrong = f" * IF(id % {WRONG_EVERY} = 0, {TIMES_TOO_MUCH}, 1)" if commit == WRONG_COMMIT else ""
        ids = self.ids(commit)
        columns = f"CAST(id AS INT), CAST(1 + id * 7 % {PRODUCTS} AS INT), CAST((1 + id % 5){wrong} AS INT)"
        return f"INSERT INTO {database}.orders SELECT {columns} FROM range({ids.start}, {ids.stop}, 1, 1)"

    def repair(self, database: str, using: str) -> str:
        """Return the statement that corrects the wrong rows, in a way that the format has."""
        ids = self.ids(WRONG_COMMIT)
        are_wrong = f"id BETWEEN {ids.start} AND {ids.stop - 1} AND id % {WRONG_EVERY} = 0"
        right = f"CAST(amount / {TIMES_TOO_MUCH} AS INT)"
        if using != "paimon":
            return f"UPDATE {database}.orders SET amount = {right} WHERE {are_wrong}"
        amount = f"IF({are_wrong}, {right}, amount) AS amount"
        return f"INSERT OVERWRITE {database}.orders SELECT id, product, {amount} FROM {database}.orders"


def _order(id_: int) -> tuple[int, int, int]:
    return (id_, 1 + id_ * 7 % PRODUCTS, 1 + id_ % 5)


def _product(number: int) -> tuple[int, str, int]:
    return (number, f"product {number:02}", 2 + number)


@dataclass(frozen=True)
class TableCommit:
    """A commit to a table's main, as the format's own files have it."""

    snapshot: int
    seconds: float
    """When its file was written."""


class Shop(CorrectedPlace):
    """Its tables are of one format. All that use it are processes of their own, and at work at the same time: so the
    store is a PostgreSQL, and Hive's metastore another one, where a format needs it. `servers` are their addresses."""

    statements = ANEW

    def __init__(self, folder: Path, java_home: Path, using: str, servers: tuple[str, str], book: OrderBook) -> None:
        store, metastore = servers
        extensions, database = FORMATS[using]
        more = {"spark.headwater.jdbc.url": store}
        if database.startswith("spark_catalog"):
            extensions = Extensions((*extensions.packages, JDBC.packages[0]), {**extensions.conf, **_hive(metastore)})
        else:
            more["spark.sql.catalogImplementation"] = "in-memory"
        super().__init__(folder, java_home, extensions, database, using)
        self.place.configure(more)
        self._store, self.book = store, book

    @property
    def store(self) -> str:
        return self._store

    def commits(self, table: str) -> list[TableCommit]:
        """Return the commits to a table, the oldest first."""
        if self.using == "iceberg":
            folder = self.folder / "ice" / "db" / table
            entries = metadata_at(folder).content["snapshot-log"]
            return [TableCommit(int(each["snapshot-id"]), each["timestamp-ms"] / 1_000) for each in entries]
        if self.using == "delta":
            log = self.folder / "spark" / "db.db" / table / "_delta_log"
            files = {int(file.stem): file for file in log.glob("*.json") if file.stem.isdigit()}
        else:
            snapshots = self.folder / "pai" / "db.db" / table / "snapshot"
            files = {int(file.name.rpartition("-")[2]): file for file in snapshots.glob("snapshot-*")}
        return [TableCommit(number, files[number].stat().st_mtime) for number in sorted(files)]

    def wrong_snapshot(self) -> int:
        before = 1 if self.using == "delta" else 0  # its first version makes the table
        return self.commits("orders")[before + WRONG_COMMIT - 1].snapshot


def is_data_file(path: str) -> bool:
    """Return whether a file of a table holds rows."""
    parts = Path(path).parts
    kept_apart = {"metadata", "_delta_log", "manifest", "snapshot", "schema", "tag", "index", "statistics"}
    return path.endswith((".parquet", ".orc", ".avro")) and kept_apart.isdisjoint(parts)


def _hive(address: str) -> dict[str, str]:
    """Return what a metastore needs that several processes use at once."""
    url = make_url(address)
    own = {
        "javax.jdo.option.ConnectionURL": f"jdbc:postgresql://{url.host}:{url.port}/{url.database}",
        "javax.jdo.option.ConnectionDriverName": "org.postgresql.Driver",
        "javax.jdo.option.ConnectionUserName": str(url.username),
        "javax.jdo.option.ConnectionPassword": str(url.password),
        "datanucleus.schema.autoCreateAll": "true",
        "hive.metastore.schema.verification": "false",
    }
    return {f"spark.hadoop.{key}": value for key, value in own.items()}


class Production:
    """The shop's ingestion and its jobs: one process, in which each step is an application of its own."""

    def __init__(self, shop: Shop) -> None:
        self._shop = shop
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None
        self.orders = 0
        """How many commits to the orders there are."""

    @contextmanager
    def started(self) -> Iterator[Production]:
        shop, story = self._shop, self._shop.folder / STORY
        shop.write_scripts()
        os.mkfifo(story)
        self._log = shop.folder / "production.log"
        with (
            self._log.open("w") as log,
            ProcessGroup(
                [HEADWATER, "run", "production.py"],
                cwd=shop.folder,
                env=shop.place.environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,
            ) as process,
            # For reading, too: else this waits for a process that may have ended.
            os.fdopen(os.open(story, os.O_RDWR), "w", buffering=1, closefd=True) as self._story,
        ):
            assert process.stdout is not None
            self._answers: IO[str] = process.stdout
            try:
                yield self
            finally:
                self._stop.set()
                if self._thread is not None:
                    self._thread.join(SECONDS)

    def open_shop(self) -> None:
        """Make the tables, and go on until the error is in all of them."""
        self._play({"sql": self._shop.book.opening(self._shop.database, self._shop.using)})
        for _ in range(WRONG_COMMIT):
            self.go_on()

    def go_on(self) -> None:
        """Get orders, and make all from them."""
        with self._lock:
            self._play({"sql": [self._shop.book.insert(self._shop.database, self.orders + 1)]})
            self.orders += 1
            for job in self._shop.jobs:
                self._play(job)

    def go_on_for_long(self) -> None:
        """Go on in a thread, until the end or a pause."""

        def play() -> None:
            try:
                while not self._stop.wait(PAUSE):
                    self.go_on()
            except BaseException as e:  # noqa: BLE001 - whoever waits has to see it
                self._error = e

        self._stop.clear()
        self._thread = threading.Thread(target=play)
        self._thread.start()

    def pause(self) -> None:
        """Let what has begun come to its end, and stop."""
        self._stop.set()
        assert self._thread is not None
        self._thread.join(SECONDS)
        assert not self._thread.is_alive(), "production doesn't come to its end"
        self.check()
        # Until another application begins, the process may still fail, and so the last job runs as far as is known.
        self._play({"sql": []})

    def check(self) -> None:
        if self._error is not None:
            raise AssertionError(f"production ended: {self._log.read_text()[-3000:]}") from self._error

    def _play(self, step: Mapping[str, Sequence[str]]) -> None:
        self._story.write(f"{json.dumps(step)}\n")
        for line in self._answers:
            if line.strip() == "played":
                return
        raise AssertionError(f"production ended in {step}: {self._log.read_text()[-3000:]}")
