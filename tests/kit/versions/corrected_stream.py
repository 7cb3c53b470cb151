"""Orders of a Delta table, a stream that keeps their totals, and a correction of both in one Spark session."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Final

from headwater.lens import lens
from headwater.lineage.mapping import map_event
from headwater.lineage.store import Store
from headwater.versions.correction import CorrectionMode, CorrectionPlan, RerunCommand, RerunCommands, plan_correction
from headwater.versions.correction.execution import Corrector, Mirror, begin_correction
from headwater.versions.correction.execution import correction as mirrors
from headwater.versions.correction.execution.redirects import lens_of
from headwater.versions.correction.execution.spark_tables import SparkCorrectionTables
from headwater.versions.correction.execution.statements import prepare_statement
from headwater.versions.correction.journal import Correction
from headwater.versions.correction.switched_tables import SparkSwitchTables
from headwater.versions.correction.switching import Switcher
from headwater.versions.step_journal import StepKind
from tests.kit.spark.driver import Driver
from tests.kit.spark.streams import Case
from tests.kit.versions.memory_correction import KilledError

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

WRONG: Final = 4
"""The version of the orders that is wrong."""
Totals = dict[str, int]


class Shop:
    """Orders of a Delta table, and a stream that keeps their totals by item."""

    def __init__(self, driver: Driver, store: Store, wrong: int = WRONG) -> None:
        self.wrong = f"orders@{wrong}"
        self.case, self.driver, self.store = Case(driver), driver, store
        self.db = f"spark_catalog.{self.case.db}"
        self.orders, self.totals = f"{self.db}.orders", f"{self.db}.totals"
        self.checkpoint = str(self.case.checkpoint())
        self.rows_read = list[int]()
        self.dies = False
        """The corrector's process dies as soon as the stream has ended, before it notes that."""
        driver.run(
            f"CREATE TABLE {self.orders} (id INT, item STRING, price INT) USING delta",
            f"CREATE TABLE {self.totals} (item STRING, total BIGINT) USING delta",
        )

    def start(self, checkpoint: str | None = None) -> StreamingQuery:
        """Start the stream, as its script does in production and on mirrors."""
        rows = self.driver.spark.readStream.table(self.orders)
        sums = rows.groupBy("item").sum("price").toDF("item", "total")
        writer = sums.writeStream.format("delta").outputMode("complete").queryName("totals")
        place = writer.option("checkpointLocation", checkpoint or self.checkpoint)
        return place.trigger(availableNow=True).toTable(self.totals)

    def run_stream(self, checkpoint: str | None = None) -> int:
        """Return how many rows it read."""
        query = self.start(checkpoint)
        query.awaitTermination()
        return sum(int(each["numInputRows"]) for each in query.recentProgress)

    def produce(self, *commits: str, checkpoint: str | None = None) -> None:
        """Let production get orders, each of these by one commit, and its stream read them."""
        self.report([f"INSERT INTO {self.orders} VALUES {rows}" for rows in commits])
        self.report([lambda _: self.run_stream(checkpoint)])

    def report(self, steps: Sequence[Any]) -> None:
        """Do what production does, and let the store have what is captured of it."""
        for event in self.driver.events_of(*steps):
            self.store.merge(map_event(event))

    def plan(self, _: Correction | None = None) -> CorrectionPlan:
        with self.store.engine.connect() as connection:
            asked: dict[str, Any] = {"mode": CorrectionMode.INCREMENTAL}
            jobs = plan_correction(connection, f"{self.db}.{self.wrong}", **asked).jobs
            commands = RerunCommands({job.job: RerunCommand(job.job, "totals.py") for job in jobs})
            return plan_correction(connection, f"{self.db}.{self.wrong}", commands=commands, **asked)

    def begin(self) -> Corrector:
        return begin_correction(self.store, self.plan(), self.tables)

    def tables(self) -> Any:
        return nullcontext(SparkCorrectionTables(self.driver.spark))

    def run_command(
        self,
        correction: str,
        job: str,
        command: str,
        mirrors: Sequence[Mirror],
        resets: Sequence[str],
        *,
        checkpoints: Mapping[str, str],
        should_continue: Callable[[], bool] = lambda: True,
    ) -> None:
        """Run the stream on the mirrors, as a process of its own does."""
        assert (command, resets) == ("totals.py", ())
        assert should_continue()
        asked = lens_of(correction, {mirror.table: mirror for mirror in mirrors}, (), checkpoints)
        with lens(
            self.driver.spark, redirects=asked.redirects, name=asked.name, writes_elsewhere=False, reads_elsewhere=True
        ):
            self.rows_read.append(self.run_stream())
        if self.dies:
            self.dies = False
            raise KilledError

    def correct(self, corrector: Corrector, statement: str) -> None:
        """Run a statement of the user's on the mirrors, as `headwater correct sql` does."""
        found = corrector.load()
        prepare_statement(self.driver.spark, found, statement)
        with mirrors(self.driver.spark, self.store, found.name):
            self.driver.spark.sql(statement)

    def sums(self, name: str | None = None) -> Totals:
        return {row[0]: row[1] for row in self.driver.rows(f"SELECT item, total FROM {name or self.totals}")}

    def mirrored(self, corrector: Corrector) -> Totals:
        steps = {step.subject: step.detail for step in corrector.load().of(StepKind.MIRROR)}
        return self.sums(steps[self.totals]["name"])

    def switcher(self, corrector: Corrector, start: Callable[[str, str], None] = lambda *_: None) -> Switcher:
        steps = corrector.load().of(StepKind.MIRROR)
        branches = {step.subject: str(step.detail["branch"]) for step in steps}
        tables = SparkSwitchTables(self.driver.spark, self.store, branches)
        return Switcher(self.store, corrector.load().name, lambda: nullcontext(tables), start_stream=start)
