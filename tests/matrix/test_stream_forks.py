"""A stateful query on Delta goes on from a fork of its checkpoint, behind its last right batch, on a corrected table.

Truth: rows by hand, and in the matrix those of the same query over a history without the error. What is held: state of
before the fork counts, the wrong rows don't, the sink that knows the old query takes the fork's batches, and the old
checkpoint keeps every byte.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from headwater.versions.forks import SourceMove, plan_fork, write_fork
from tests.kit.formats.delta_racer import QUICK
from tests.kit.spark.driver import DELTA, Driver, shared_driver_fixture
from tests.kit.spark.streams import Case, run_fed
from tests.kit.spark.versions import MAJOR

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

pytestmark = [
    pytest.mark.xdist_group("spark-delta"),
    pytest.mark.sample(1, keep=("aggregation-files",)),
    pytest.mark.needs("delta"),
]

driver = shared_driver_fixture(DELTA, **QUICK)

_ROCKS: Final = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_STATE: Final = "spark.sql.streaming.stateStore"
PROVIDERS: Final[dict[str, dict[str, str]]] = {
    "files": {},
    "rocksdb": {f"{_STATE}.providerClass": _ROCKS},
    "changelog": {
        f"{_STATE}.providerClass": _ROCKS,
        f"{_STATE}.rocksdb.changelogCheckpointing.enabled": "true",
    },
}
if MAJOR >= 4:
    PROVIDERS["unique-ids"] = {**PROVIDERS["changelog"], f"{_STATE}.checkpointFormatVersion": "2"}

Rows = list[tuple[Any, ...]]
Feed = tuple[str, str]
"""A table and the rows that it gets by one commit."""
FIRST: Final = (
    ("orders", "(1, 'a', 10, TIMESTAMP'2026-01-01 00:00:00'), (2, 'b', 20, TIMESTAMP'2026-01-01 00:01:00')"),
    ("payments", "(2, TIMESTAMP'2026-01-01 00:02:00')"),
)
SECOND: Final = (("orders", "(3, 'a', 30, TIMESTAMP'2026-01-01 00:03:00')"),)
"""Orders are at version 2 then: the creation is version 0."""
_REPEATED: Final = "(1, 'a', 10, TIMESTAMP'2026-01-01 00:00:00')"
WRONG: Final = ("orders", f"(4, 'b', 4000, TIMESTAMP'2026-01-01 00:04:00'), {_REPEATED}")
MENDED: Final = ("orders", f"(4, 'b', 40, TIMESTAMP'2026-01-01 00:04:00'), {_REPEATED}")
LATER: Final = (
    ("payments", "(1, TIMESTAMP'2026-01-01 00:05:00'), (4, TIMESTAMP'2026-01-01 00:06:00')"),
    ("orders", "(5, 'a', 50, TIMESTAMP'2026-01-01 00:07:00')"),
)


@dataclass(frozen=True)
class Operation:
    """What the query keeps state for, and what its sink has at the end."""

    name: str
    mode: str
    build: Callable[[DataFrame, DataFrame], DataFrame]
    truth: Rows


def _aggregation(orders: DataFrame, _: DataFrame) -> DataFrame:
    return orders.groupBy("item").agg({"price": "sum"}).toDF("item", "total")


def _without_repeats(orders: DataFrame, _: DataFrame) -> DataFrame:
    return orders.withWatermark("at", "1 hour").dropDuplicates(["id", "at"]).select("id", "price")


def _join(orders: DataFrame, payments: DataFrame) -> DataFrame:
    paid = payments.withColumnRenamed("at", "paid").withWatermark("paid", "1 hour")
    both = orders.withWatermark("at", "1 hour").join(paid, "id").where("paid BETWEEN at AND at + INTERVAL 30 MINUTES")
    return both.select("id", "price")


OPERATIONS: Final = (
    Operation("aggregation", "complete", _aggregation, [("a", 100), ("b", 60)]),
    Operation("deduplication", "append", _without_repeats, [(1, 10), (2, 20), (3, 30), (4, 40), (5, 50)]),
    Operation("join", "append", _join, [(1, 10), (1, 10), (2, 20), (4, 40)]),
)


class Stream:
    """A query of one case, its tables and its sink."""

    def __init__(self, case: Case, operation: Operation, provider: str) -> None:
        self.case, self.operation, self.settings = case, operation, PROVIDERS[provider]

    def make_tables(self) -> None:
        self.case.driver.run(
            f"CREATE TABLE delta.`{self.path('orders')}` (id INT, item STRING, price INT, at TIMESTAMP) USING delta",
            f"CREATE TABLE delta.`{self.path('payments')}` (id INT, at TIMESTAMP) USING delta",
        )

    def path(self, name: str) -> str:
        return self.case.path(name)

    def feed(self, *feeds: Feed, orders: str = "orders") -> None:
        for table, rows in feeds:
            path = self.path(orders if table == "orders" else table)
            self.case.driver.run(f"INSERT INTO delta.`{path}` VALUES {rows}")

    def run(self, checkpoint: str, *feeds: Iterable[Feed], orders: str = "orders") -> None:
        """Read what is there, and then what each of these adds, one after the other."""
        with self._set():
            read = self.case.spark.readStream.format("delta")
            frame = self.operation.build(read.load(self.path(orders)), read.load(self.path("payments")))
            writer = self.case.writer(frame, checkpoint).format("delta").outputMode(self.operation.mode)
            run_fed(lambda: writer.start(self.path("sink")), *(partial(self.feed, *each) for each in feeds))

    def clone_orders(self, name: str, version: int) -> None:
        old, new = self.path("orders"), self.path(name)
        self.case.driver.run(f"CREATE TABLE delta.`{new}` SHALLOW CLONE delta.`{old}` VERSION AS OF {version}")

    def sink_rows(self) -> Rows:
        frame = self.case.spark.read.format("delta").load(self.path("sink"))
        return sorted(tuple(row) for row in frame.collect())

    def restore_sink(self, batch: int) -> None:
        """Set the sink back to what it had behind a batch of the old query, which it still knows."""
        version = max(number for number, known in self._batches_in_sink() if known <= batch)
        self.case.driver.run(f"RESTORE TABLE delta.`{self.path('sink')}` TO VERSION AS OF {version}")

    def _batches_in_sink(self) -> Generator[tuple[int, int], None, None]:
        for path in Path(self.path("sink"), "_delta_log").glob("*.json"):
            for action in map(json.loads, path.read_text().splitlines()):
                if "txn" in action:
                    yield int(path.stem), action["txn"]["version"]

    @contextmanager
    def _set(self) -> Generator[None, None, None]:
        conf = self.case.spark.conf
        for key, value in self.settings.items():
            conf.set(key, value)
        try:
            yield
        finally:
            for key in self.settings:
                conf.unset(key)


def batch_that_read(checkpoint: Path, orders_version: int) -> int:
    """The newest batch behind which the query had read that version of the orders, and nothing later."""
    for path in sorted((checkpoint / "offsets").glob("[0-9]*"), key=lambda path: -int(path.name)):
        if json.loads(path.read_text().splitlines()[2])["reservoirVersion"] == orders_version + 1:
            return int(path.name)
    raise AssertionError(f"no batch ended with version {orders_version}")


def content(directory: Path) -> dict[str, bytes]:
    return {str(each.relative_to(directory)): each.read_bytes() for each in directory.rglob("*") if each.is_file()}


CASES: Final = [
    pytest.param(operation, provider, id=f"{operation.name}-{provider}")
    for operation in OPERATIONS
    for provider in PROVIDERS
]


@pytest.mark.parametrize(("operation", "provider"), CASES)
def test_a_fork_goes_on_right(driver: Driver, operation: Operation, provider: str) -> None:
    case = Case(driver)
    stream = Stream(case, operation, provider)
    stream.make_tables()
    stream.feed(*FIRST)
    stream.run("checkpoint", SECOND, [WRONG, *LATER])
    assert stream.sink_rows() != operation.truth, "the planted error shows"
    before = content(case.checkpoint())
    driver.run(
        f"CREATE TABLE delta.`{stream.path('mended')}` SHALLOW CLONE delta.`{stream.path('orders')}` VERSION AS OF 2"
    )
    for each in (MENDED, LATER[1]):
        stream.feed(each, orders="mended")
    batch = batch_that_read(case.checkpoint(), 2)

    plan = plan_fork(
        str(case.checkpoint()),
        batch,
        str(case.checkpoint("fork")),
        (SourceMove(stream.path("orders"), stream.path("mended")),),
    )
    write_fork(plan)
    stream.restore_sink(batch)
    stream.run("fork", orders="mended")

    assert stream.sink_rows() == operation.truth
    assert content(case.checkpoint()) == before
    assert plan.new_query_id != plan.query_id


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda each: each.name)
def test_a_history_without_the_error_has_these_rows(driver: Driver, operation: Operation) -> None:
    """Spark itself says that the rows by hand are what the query makes where nothing was wrong."""
    stream = Stream(Case(driver), operation, "files")
    stream.make_tables()
    stream.feed(*FIRST)

    stream.run("checkpoint", SECOND, [MENDED, *LATER])

    assert stream.sink_rows() == operation.truth


def test_a_copy_that_keeps_the_id_is_skipped(driver: Driver) -> None:
    """Why a fork has an id of its own: by the old one the sink takes its batches for those that it has."""
    operation = OPERATIONS[0]
    case = Case(driver)
    stream = Stream(case, operation, "files")
    stream.make_tables()
    stream.feed(*FIRST)
    stream.run("checkpoint", SECOND, [WRONG])
    batch = batch_that_read(case.checkpoint(), 2)
    write_fork(plan_fork(str(case.checkpoint()), batch, str(case.checkpoint("fork"))))
    for name in ("metadata", ".metadata.crc"):
        (case.checkpoint("fork") / name).write_bytes((case.checkpoint() / name).read_bytes())
    stream.restore_sink(batch)
    restored = stream.sink_rows()

    stream.run("fork")

    assert stream.sink_rows() == restored == [("a", 40), ("b", 20)]


def test_files_that_later_batches_read_are_read_again(driver: Driver) -> None:
    """The checkpoint notes which files were seen: those of later batches, left there, would never be read."""
    case = Case(driver)
    files, sink = Path(case.path("files")), case.path("sink")
    files.mkdir()

    def add(number: int) -> None:
        (files / f".{number}.part").write_text(json.dumps({"id": number}))
        (files / f".{number}.part").rename(files / f"{number}.json")

    def run(checkpoint: str, *numbers: int) -> None:
        frame = case.spark.readStream.schema("id INT").json(str(files)).groupBy().count()
        writer = case.writer(frame, checkpoint).format("delta").outputMode("complete")
        run_fed(lambda: writer.start(sink), *(partial(add, each) for each in numbers))

    add(1)
    run("checkpoint", 2, 3)
    write_fork(plan_fork(str(case.checkpoint()), 0, str(case.checkpoint("fork"))))
    driver.run(f"RESTORE TABLE delta.`{sink}` TO VERSION AS OF 0")

    run("fork")

    assert [row[0] for row in driver.rows(f"SELECT * FROM delta.`{sink}`")] == [3]
