"""A shop whose tables are made by aligned jobs, and in which one order is wrong, unless it is the shop of the truth.

Details have each order at the price of its data version, and the number of that; a total is merged from the details.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from headwater.events import JobName
from headwater.lineage.store import Store
from headwater.versions.aligned import AlignedBatch, AlignedQuery, GroupClaims, aligned_query
from headwater.versions.branches.format_branches import branches_of
from headwater.versions.correction import CorrectionMode, CorrectionPlan, RerunCommand, RerunCommands, plan_correction
from headwater.versions.correction.execution import Corrector, begin_correction, correction
from headwater.versions.correction.execution.aligned_reruns import MirroredJobs
from headwater.versions.correction.execution.fenced_switch import FencedSwitch
from headwater.versions.correction.execution.job_driver import set_back
from headwater.versions.correction.execution.redirects import mirrors_of
from headwater.versions.correction.execution.spark_tables import SparkCorrectionTables
from headwater.versions.correction.execution.tables import CorrectionError, Mirror
from headwater.versions.correction.journal import CorrectionJournal
from headwater.versions.correction.switched_tables import SparkSwitchTables
from headwater.versions.correction.switching import TableSwitch
from tests.kit.lineage.scripted_producer import store as put
from tests.kit.spark.driver import Driver
from tests.kit.versions.branches import CATALOGS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SECONDS: Final = 300
TABLES: Final = ("orders", "products", "details", "total")
WRONG: Final = 999


class AlignedShop:
    """Production of one shop, and the corrections of it."""

    def __init__(self, driver: Driver, table_format: str, place: Path, store: Store) -> None:
        self.driver, self.store, self.place, self._format = driver, store, place, table_format
        catalog = CATALOGS[table_format]
        self.db = f"{catalog}.{driver.database(catalog)}"
        self.meanwhile: Callable[[], None] = lambda: None
        """Done within the first run of a command of a correction, by production."""
        self.calls: list[tuple[str, int, int]] = []
        """Each barrier that a function was run on: the job, the number, and how many rows were new."""
        using = "" if table_format == "paimon" else f" USING {table_format}"
        self.tell(
            f"CREATE TABLE {self.db}.products (id INT, price INT){using}",
            f"CREATE TABLE {self.db}.orders (id INT, product INT, amount INT){using}",
            f"CREATE TABLE {self.db}.details (id INT, total INT, version BIGINT){using}",
            f"CREATE TABLE {self.db}.total (k INT, total BIGINT){using}",
            f"INSERT INTO {self.db}.products VALUES (1, 5), (2, 7)",
            f"INSERT INTO {self.db}.total VALUES (0, 0)",
        )

    def tell(self, *statements: str | Callable[[Any], object], job: str = "ingest") -> None:
        """Run statements of production, of which the store learns as those of a job."""
        about = JobName(name=self.name(job))
        events = [
            event.model_copy(update={"job": about}) if isinstance(getattr(event, "job", None), JobName) else event
            for event in self.driver.events_of(*statements)
        ]
        with self.store.engine.begin() as connection:
            put(connection, events)

    def order(self, number: int, product: int, amount: int) -> None:
        self.tell(f"INSERT INTO {self.db}.orders VALUES ({number}, {product}, {amount})")

    def reprice(self, product: int, price: int) -> None:
        other = 3 - product
        keep = f"SELECT id, price FROM {self.db}.products WHERE id = {other}"
        self.tell(f"INSERT OVERWRITE {self.db}.products {keep} UNION ALL SELECT {product}, {price}")

    def name(self, job: str) -> str:
        return f"{job} of {self.db}"

    def query(self, job: str, spark: SparkSession | None = None) -> AlignedQuery:
        sources = {"orders": "orders", "products": "products"} if job == "details" else {"details": "details"}
        return aligned_query(
            self.group(job),
            {source: f"{self.db}.{table}" for source, table in sources.items()},
            name=self.name(job),
            checkpoint=str(self.place / f"{self.db} {job}"),
            store=self.store,
            spark=spark or self.driver.spark,
        )

    def step(self, job: str) -> Callable[[AlignedBatch], None]:
        return {"details": self._details, "total": self._total}[job]

    def run_jobs(self) -> None:
        """Let production's jobs play what is new."""
        for job in ("details", "total"):
            self.run_job(job)

    def run_job(self, job: str) -> None:
        self.tell(lambda _: self.query(job).run(self.step(job)), job=job)

    @contextmanager
    def running(self, job: str) -> Generator[None]:
        """Have a job of production run inside the block, in a session of its own, as a process of its own would."""
        query, errors = self.query(job, self.driver.spark.newSession()), list[BaseException]()

        def run() -> None:
            try:
                query.run(self.step(job), trigger="continuous", poll_seconds=0.2)
            except BaseException as e:
                errors.append(e)
                raise

        thread = threading.Thread(target=run)
        thread.start()
        try:
            yield
        finally:
            query.stop()
            thread.join()
        assert not errors, errors

    def wait_until_done(self, job: str, number: int) -> None:
        """Wait until a job has committed a data version."""
        claims = GroupClaims(self.store, self.group(job))
        until = time.monotonic() + SECONDS
        while not any(each.job == self.name(job) and each.done == number for each in claims.jobs()):
            assert time.monotonic() < until, claims.jobs()
            time.sleep(0.2)

    def group(self, job: str) -> str:
        return f"{job} group of {self.db}"

    def _details(self, batch: AlignedBatch) -> None:
        orders, products = batch.changes("orders"), batch.state("products").withColumnRenamed("id", "product")
        self.calls.append(("details", batch.number, orders.count()))
        made = f"CAST({batch.number} AS BIGINT) AS version"
        rows = orders.join(products, "product").selectExpr("id", "amount * price AS total", made)
        batch.write(f"{self.db}.details", rows.writeTo(f"{self.db}.details").append)

    def _total(self, batch: AlignedBatch) -> None:
        rows = batch.changes("details")
        self.calls.append(("total", batch.number, rows.count()))
        rows.createOrReplaceTempView("new_details")
        new = "SELECT 0 AS k, COALESCE(sum(total), 0) AS total FROM new_details"
        merge = (
            f"MERGE INTO {self.db}.total t USING ({new}) s ON t.k = s.k "
            "WHEN MATCHED THEN UPDATE SET total = t.total + s.total"
        )
        if self._format == "paimon":  # whose MERGE needs a key, and an extension that Iceberg's breaks
            merge = (
                f"INSERT OVERWRITE {self.db}.total SELECT t.k, t.total + s.total FROM {self.db}.total t "
                f"JOIN ({new}) s ON t.k = s.k"
            )
        batch.write(f"{self.db}.total", partial(batch.spark.sql, merge))

    def rows(self) -> dict[str, list[tuple[Any, ...]]]:
        """Return all rows by the names of the tables: within a correction's block those of the mirrors."""
        return {t: sorted(map(tuple, self.driver.rows(f"SELECT * FROM {self.db}.{t}"))) for t in TABLES}

    def head(self, table: str) -> int:
        found = branches_of(self.driver.spark, f"{self.db}.{table}").main_head()
        assert found is not None
        return found

    def plan(self, snapshot: int, mode: CorrectionMode = CorrectionMode.FULL) -> CorrectionPlan:
        commands = RerunCommands({self.name(j): RerunCommand(self.name(j), f"{j}.py") for j in ("details", "total")})
        with self.store.engine.connect() as connection:
            return plan_correction(connection, f"{self.db}.orders@{snapshot}", mode=mode, commands=commands)

    def begin(self, snapshot: int, mode: CorrectionMode = CorrectionMode.FULL) -> Corrector:
        tables = SparkCorrectionTables(self.driver.spark)
        found: list[Corrector] = []
        self.driver.events_of(
            lambda _: found.append(begin_correction(self.store, self.plan(snapshot, mode), lambda: nullcontext(tables)))
        )
        return found[0]

    def correct(self, name: str, statement: str) -> None:
        with correction(self.driver.spark, self.store, name):
            self.driver.events_of(statement.format(db=self.db))

    def rows_of_mirrors(self, name: str) -> dict[str, list[tuple[Any, ...]]]:
        with correction(self.driver.spark, self.store, name):
            return self.rows()

    def run(self, corrector: Corrector, **more: Any) -> Any:
        """Run a correction's jobs, in this process in place of their own."""
        found: list[Any] = []

        def plan(about: Any) -> CorrectionPlan:
            return self.plan(about.plan.snapshot, about.plan.mode)

        self.driver.events_of(lambda _: found.append(corrector.run(self._run_command, plan, **more)))
        return found[0]

    def _run_command(
        self,
        name: str,
        job: str,
        command: str,
        mirrors: Sequence[Mirror],
        resets: Sequence[str],
        *,
        checkpoints: Mapping[str, str],
        should_continue: Callable[[], bool],
    ) -> None:
        assert not checkpoints  # aligned jobs have none of Spark's
        assert should_continue()
        self.meanwhile()
        self.meanwhile = lambda: None
        spark = self.driver.spark
        for mirror in mirrors:
            if mirror.table in resets:
                set_back(spark, mirror)
        with correction(spark, self.store, name), standing_in(name):
            try:
                short = command.removesuffix(".py")
                self.query(short).run(self.step(short))
            except Exception as e:
                raise CorrectionError(f"{job}: {type(e).__name__}: {e}") from e

    def switch(self, name: str, **more: Any) -> dict[str, int | None]:
        """Switch a correction behind fences, and return the tables' snapshots."""
        spark, found = self.driver.spark, list[tuple[TableSwitch, ...]]()
        branches = {
            table: each.branch for table, each in mirrors_of(CorrectionJournal(self.store, name).load()).items()
        }
        fenced = FencedSwitch(
            open_tables=lambda: nullcontext(SparkCorrectionTables(spark)),
            open_switch_tables=lambda: nullcontext(SparkSwitchTables(spark, self.store, branches)),
            run_command=self._run_command,
            make_plan=lambda about: self.plan(about.plan.snapshot, about.plan.mode),
            **more,
        )
        self.driver.events_of(lambda _: found.append(fenced.switch(self.store, name)))
        return {each.table.rpartition(".")[2]: each.snapshot for each in found[0]}


@contextmanager
def standing_in(correction_name: str) -> Generator[None]:
    """Have queries of this process leave their barriers to a correction, as in a job's own process."""
    AlignedQuery.stand_in = MirroredJobs(correction_name)
    try:
        yield
    finally:
        AlignedQuery.stand_in = None
