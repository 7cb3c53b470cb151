"""A driver whose statements are captured: what is captured of each comes back as events.

    driver = driver_fixture(ICEBERG)

    def test_append(driver):
        db = driver.database()                      # a database (in each catalog) of this case's own
        driver.run(f"CREATE TABLE ice.{db}.t (id INT) USING iceberg")
        events = driver.events_of(f"INSERT INTO ice.{db}.t VALUES (1)")
        committed = the(Committed, events)

One JVM per process can be alive: a module has one driver, or modules of one `xdist_group` share one
(`shared_driver_fixture`). Truth never comes from here.
"""

from __future__ import annotations

import itertools
import shutil
import socket
import tempfile
import traceback
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import pytest

from headwater.events import ColumnLineage, Committed, Event, Gap, JobLineage
from headwater.events.identity import Environment
from headwater.events.jobs import SparkDetails
from headwater.events.producer import Producer
from headwater.events.redaction import Redactor
from headwater.listeners.capture import Capture
from headwater.listeners.capture.context import CaptureContext
from headwater.listeners.capture.formats import installed
from headwater.listeners.jobs import ApplicationFacts, ApplicationRuns
from headwater.listeners.settings import read_settings
from tests.kit.spark.session import hold, release, spark_session
from tests.kit.spark.versions import packages

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

E = TypeVar("E", bound=Event)
C = TypeVar("C")
SECONDS: Final = 120.0
HOST: Final = socket.gethostname()


@dataclass(frozen=True)
class Extensions:
    """What a driver is started with. `{warehouse}` in a value is a directory of the driver's own."""

    packages: tuple[str, ...]
    conf: Mapping[str, str]


PLAIN: Final = Extensions((), {})
ICEBERG: Final = Extensions(
    packages("iceberg"),
    {
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.catalog.ice": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.ice.type": "hadoop",
        "spark.sql.catalog.ice.warehouse": "{warehouse}/ice",
    },
)
DELTA: Final = Extensions(
    packages("delta"),
    {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    },
)
PAIMON: Final = Extensions(
    packages("paimon"),
    {
        "spark.sql.extensions": "org.apache.paimon.spark.extensions.PaimonSparkSessionExtensions",
        "spark.sql.catalog.pai": "org.apache.paimon.spark.SparkCatalog",
        "spark.sql.catalog.pai.warehouse": "file:{warehouse}/pai",
    },
)

HUDI: Final = Extensions(
    packages("hudi"),
    {
        "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
        "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
    },
)
KAFKA: Final = Extensions(packages("kafka"), {})
JDBC: Final = Extensions(
    (
        "org.postgresql:postgresql:42.7.8",
        "org.mariadb.jdbc:mariadb-java-client:3.5.6",
        "org.xerial:sqlite-jdbc:3.50.3.0",
    ),
    {},
)


def together(*extensions: Extensions) -> Extensions:
    """Several in one application. Iceberg's and Paimon's extensions break each other."""
    conf = {key: value for each in extensions for key, value in each.conf.items()}
    conf["spark.sql.extensions"] = ",".join(
        e.conf["spark.sql.extensions"] for e in extensions if "spark.sql.extensions" in e.conf
    )
    return Extensions(tuple(p for e in extensions for p in e.packages), conf)


class TestBus:
    """Keeps the events that are emitted, stamped and encoded as the real one would."""

    __test__ = False

    def __init__(self, *, capture_sql: bool) -> None:
        self.producer = Producer("app-1", capture_sql=capture_sql)
        self.events: list[Event] = []
        self.bytes: list[int] = []
        self.faults: list[str] = []

    def emit(self, draft: Event) -> tuple[Event, ...]:
        try:
            captured = self.producer.emit(draft, lambda _, data: self.bytes.append(len(data)))
        except Exception:  # noqa: BLE001 - the case's own thread has to see it
            self.faults.append(traceback.format_exc())
            return ()
        self.events.extend(captured)
        return captured


class Driver:
    """A Spark driver with capture attached."""

    def __init__(self, spark: SparkSession, capture: Capture, bus: TestBus, warehouse: Path) -> None:
        self.spark = spark
        self.capture = capture
        self.bus = bus
        self.warehouse = warehouse
        self._cases = itertools.count(1)

    def name(self) -> str:
        """A name that no other case has."""
        return f"case_{next(self._cases)}"

    def database(self, *catalogs: str) -> str:
        """A database of this case's own in each of these catalogs, or in Spark's own."""
        name = self.name()
        for catalog in catalogs or ("spark_catalog",):
            self.run(f"CREATE DATABASE {catalog}.{name}")
        return name

    def run(self, *statements: str) -> None:
        """Statements whose events are of no interest."""
        for statement in statements:
            self.spark.sql(statement)

    def events_of(self, *statements: str | Callable[[SparkSession], object]) -> list[Event]:
        """Return the events of these statements, and none of those before. An error of theirs is the caller's."""
        self._drain()
        before = len(self.bus.events)
        try:
            for statement in statements:
                if isinstance(statement, str):
                    self.spark.sql(statement)
                else:
                    statement(self.spark)
        finally:
            self._drain()
        return self.bus.events[before:]

    def events_of_failure(self, statement: str | Callable[[SparkSession], object]) -> list[Event]:
        """Return the events of a statement that has to fail."""
        self._drain()
        before = len(self.bus.events)
        try:
            if isinstance(statement, str):
                self.spark.sql(statement)
            else:
                statement(self.spark)
        except Exception:  # noqa: BLE001 - which one it is, is Spark's business
            self._drain()
            return self.bus.events[before:]
        raise AssertionError(f"this should have failed: {statement}")

    def lineage(self, committed: Committed) -> JobLineage:
        """The shape that this commit names, which was reported with the first commit that had it."""
        return next(e for e in of(JobLineage, self.bus.events) if e.fingerprint == committed.fingerprint)

    def rows(self, query: str) -> list[Any]:
        return self.spark.sql(query).collect()

    def _drain(self) -> None:
        assert self.capture.drain(SECONDS), "capture didn't come to an end"
        assert not self.bus.faults, self.bus.faults


@contextmanager
def driver_with(java_home: Path, extensions: Extensions, **conf: str) -> Generator[Driver, None, None]:
    """A driver with these extensions; further keys with `__` for dots: `spark__headwater__capture__hooks="off"`."""
    warehouse = Path(tempfile.mkdtemp(prefix="headwater-matrix-"))
    own = {key: value.replace("{warehouse}", str(warehouse)) for key, value in extensions.conf.items()}
    own |= {key.replace("__", "."): value for key, value in conf.items()}
    if extensions.packages:
        own["spark.jars.packages"] = ",".join(extensions.packages)
    else:
        own["spark.jars.packages"] = ""
    own.setdefault("spark.sql.warehouse.dir", str(warehouse / "spark"))
    # A short life on few cores: the second compiler would take more time than it saves.
    quick = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    own.setdefault("spark.driver.extraJavaOptions", f"-Dderby.system.home={warehouse} {quick}")
    try:
        with spark_session(java_home, **own) as spark, attached(spark) as (capture, bus):
            assert capture.drain(SECONDS)
            misfits = [each.detail for each in of(Gap, bus.events)]
            assert not misfits, "a part of the Java side, or what it reads by reflection, isn't there"
            yield Driver(spark, capture, bus, warehouse)
    finally:
        shutil.rmtree(warehouse, ignore_errors=True)


def shared_driver(java_home: Path, extensions: Extensions, **conf: str) -> Driver:
    """The driver that the modules of a group share: the first starts it, and the next one that differs ends it."""
    key = (extensions.packages, tuple(sorted(extensions.conf.items())), tuple(sorted(conf.items())))
    if key not in _shared:
        release()
        stack = ExitStack()
        _shared[key] = stack.enter_context(driver_with(java_home, extensions, **conf))
        stack.callback(_shared.clear)
        hold(stack)
    return _shared[key]


_shared: dict[object, Driver] = {}


def driver_fixture(extensions: Extensions, *statements: str, **conf: str) -> Any:
    """The fixture `driver` of a module: a driver of its own, in which these statements were run."""

    @pytest.fixture(scope="module", name="driver")
    def driver(java_home: Path) -> Generator[Driver]:
        with driver_with(java_home, extensions, **conf) as own:
            own.run(*statements)
            yield own

    return driver


def shared_driver_fixture(extensions: Extensions, **conf: str) -> Any:
    """The fixture `driver` of a module: one that it shares with others of its group."""

    @pytest.fixture(scope="module", name="driver")
    def driver(java_home: Path) -> Driver:
        return shared_driver(java_home, extensions, **conf)

    return driver


@contextmanager
def attached(spark: SparkSession, *, close_within: float = 10) -> Generator[tuple[Capture, TestBus], None, None]:
    """Capture, attached to a driver that runs. `close_within` is in seconds."""
    spark_context: Any = spark.sparkContext
    live = dict(spark_context.getConf().getAll())
    settings, faults = read_settings(live)
    assert not faults
    bus = TestBus(capture_sql=settings.capture_sql)
    context = CaptureContext(
        Environment.from_conf(live, host=HOST), live, Redactor(), installed(), settings.capture_sql
    )
    facts = ApplicationFacts(id="app-1", name="app", spark=SparkDetails(version=spark_context.version))
    capture = Capture(spark_context, settings, bus, ApplicationRuns(facts, settings, bus.emit), context)
    capture.start()
    try:
        yield capture, bus
    finally:
        capture.close(close_within)


def smoking(cases: Iterable[C], name: Callable[[C], str], *names: str) -> list[Any]:
    """The cases, of which those of these names are run on Spark 4 too, each time."""
    cases = list(cases)
    unknown = set(names) - set(map(name, cases))
    assert not unknown, f"no case is called {unknown}"
    return [pytest.param(c, marks=pytest.mark.smoke, id=name(c)) if name(c) in names else c for c in cases]


def of(kind: type[E], events: Iterable[Event]) -> list[E]:
    return [event for event in events if isinstance(event, kind)]


def the(kind: type[E], events: Iterable[Event]) -> E:
    """The one event of its kind."""
    events = list(events)
    found = of(kind, events)
    assert len(found) == 1, f"one {kind.__name__} should be emitted, but: {[e.kind for e in events]} {of(Gap, events)}"
    return found[0]


def edges(lineage: JobLineage) -> set[str]:
    """Direct edges as `target <- table.column` and indirect ones as `~KIND table.column`, with the derivation where it
    isn't IDENTITY: `total <- AGGREGATION orders.amount`."""
    return {_edge(lineage, each) for each in lineage.columns}


def _edge(lineage: JobLineage, edge: ColumnLineage) -> str:
    source = lineage.inputs[edge.input]
    name = source.table.table if source.table else source.dataset.name if source.dataset else source.opaque
    where = f"{name}.{'.'.join(edge.source)}"
    word = "" if edge.derivation.value == "IDENTITY" else f"{edge.derivation.value} "
    if edge.target is None:
        return f"~{edge.derivation.value} {where}"
    return f"{'.'.join(edge.target)} <- {word}{where}"
