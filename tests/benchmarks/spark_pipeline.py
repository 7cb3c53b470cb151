"""The pipeline on Spark, from one topic into PostgreSQL:

    python -m tests.benchmarks.spark_pipeline [--only whole|decoding|writing] [events [more events …]]

Each turn is `headwater pipeline run --available-now` with a database of its own, from its start to its end; what it
takes with one event on a topic (a JVM, a session, workers of Python) is taken away. PostgreSQL doesn't wait for its
disk. Beside the rates stand the seconds of processor time, of Spark with its workers and of the database: they mean the
same on a machine that has other things to do.

- decoding: `headwater.consumers.spark.events` beside bare `from_avro`, of the same messages; raw, which is what
  `from_avro` makes, with all checks; and with readable columns
- writing: the whole pipeline, without what a query of one event takes, beside a bare `mapPartitions` that writes rows
  which were made before, by COPY and merge
- cores: local[1] beside local[2], and what the plain writer's single process takes
- size: the rate with each number of events; linear means the same rate
"""

from __future__ import annotations

import os
import pickle
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from argparse import ArgumentParser
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from typing import Any, Final, NamedTuple

from sqlalchemy import create_engine, make_url

from headwater import local
from headwater.consumers.spark import events as events_of
from headwater.consumers.spark.pipeline.kafka_topic import kafka_package
from headwater.consumers.spark.pipeline.shares import MergedShares, Share, shuffle_keys
from headwater.events.avro import Codec, current_schema
from headwater.events.avro.framing import HEADER_BYTES
from headwater.events.jobs import Committed
from headwater.events.keys import key_of
from headwater.lineage.bulk import DatabaseBulkMeta, WriteBatch
from headwater.lineage.sql import store_digest
from headwater.lineage.store import StoreOptions, open_store
from headwater.lineage.store.engines import engine_for
from tests.benchmarks.harness import Aims, fsync_words
from tests.benchmarks.pipelines import cpu_of_children, cpu_of_database, cpu_of_tree, has_processes
from tests.benchmarks.writing import produce
from tests.kit.events.mixture import events
from tests.kit.spark.packages import package_settings
from tests.kit.spark.session import avro_package, spark_session
from tests.kit.waiting import until

EVENTS: Final = (30_000, 100_000)
ROUNDS: Final = 3
WARM_UP: Final = 3
PARTS: Final = ("whole", "decoding", "writing")
DECODING_AIM, WRITING_AIM, CORES_AIM, LINEAR_AIM = 0.8, 0.5, 1.6, 0.8


class Took(NamedTuple):
    wall: float
    client: float
    database: float
    digest: str

    def without(self, idle: Took) -> Took:
        wall, client, database = (max(1e-9, a - b) for a, b in zip(self[:3], idle[:3], strict=True))
        return Took(wall, client, database, self.digest)

    @property
    def busy(self) -> float:
        """Seconds of processor time."""
        return self.client + self.database


class Stage:
    """A broker and a database."""

    def __init__(self, kafka: str, postgres: str, jars: dict[str, str]) -> None:
        self.kafka = kafka
        self._server = postgres
        self._jars = jars

    def topic(self, count: int) -> str:
        codec, data, keys = Codec(), list[bytes](), list[bytes]()
        for each in events(count):
            data.append(codec.encode(each))
            keys.append(key_of(each))
        name = f"turn-{uuid.uuid4()}"
        produce(self.kafka, name, data, keys)
        return name

    def turn(self, work: Callable[[str, str], object], cpu: Callable[[], float] = cpu_of_children) -> Took:
        """Call with the URL of a new store and a directory. `cpu` says what the clients have used."""
        name = f"turn_{uuid.uuid4().hex}"
        engine = create_engine(self._server, isolation_level="AUTOCOMMIT")
        url = make_url(self._server).set(database=name).render_as_string(hide_password=False)
        with engine.connect() as connection, tempfile.TemporaryDirectory() as place:
            connection.exec_driver_sql(f"CREATE DATABASE {name}")
            open_store(url).close()
            before, children, began = cpu_of_database(connection), cpu(), time.perf_counter()
            work(url, place)
            wall = time.perf_counter() - began
            until(lambda: not has_processes(name))
            took = Took(wall, cpu() - children, cpu_of_database(connection) - before, digest(url))
            connection.exec_driver_sql(f"DROP DATABASE {name} WITH (FORCE)")
        engine.dispose()
        return took

    def pipeline(self, topic: str, cores: int) -> Took:
        conf = [f"--conf={key}={value}" for key, value in self._jars.items()]
        bus = ["--bus", f"kafka://{self.kafka}/{topic}", "--master", f"local[{cores}]", *conf]

        return self.turn(lambda url, _: run("pipeline", "run", "--available-now", "--store", url, *bus))

    def writer(self, topic: str) -> Took:
        bus = ["--bus", f"kafka://{self.kafka}/{topic}", "--batch", "10000"]
        return self.turn(lambda url, _: run("writer", "run", "--until-end", "--store", url, *bus))


def run(*words: str) -> None:
    command = [sys.executable, "-m", "headwater.cli", *words]
    ended = subprocess.run(command, check=False, capture_output=True, text=True)
    if ended.returncode:
        raise SystemExit(ended.stderr[-3000:])


def digest(url: str) -> str:
    with open_store(url, readonly=True) as store, store.engine.connect() as asked:
        return store_digest(asked)


def say(what: str, count: int, took: Took) -> None:
    cpu = f"client {took.client:>7.2f} s  database {took.database:>6.2f} s  {took.busy / count * 1e6:>6.0f} us/event"
    load = f"load {os.getloadavg()[0]:.1f}"
    print(f"{what:<28}{count:>10,}{count / took.wall:>10,.0f} events/s {took.wall:>8.2f} s  {cpu}  {load}", flush=True)


def whole(stage: Stage, sizes: Sequence[int], aims: Aims) -> None:
    """Cores and sizes."""
    one = stage.topic(1)
    idle = {cores: stage.pipeline(one, cores) for cores in (1, 2)}
    idle_writer = stage.writer(one)
    rates: dict[int, float] = {}
    costs: dict[int, float] = {}
    for count in sizes:
        topic = stage.topic(count)
        two = stage.pipeline(topic, 2).without(idle[2])
        say("pipeline local[2]", count, two)
        rates[count], costs[count] = count / two.wall, two.busy / count
        if count == sizes[0]:
            single = stage.pipeline(topic, 1).without(idle[1])
            say("pipeline local[1]", count, single)
            aims.at_least("local[2], of the rate of local[1]", single.wall / two.wall, CORES_AIM)
        if count <= 1_000_000:
            writer = stage.writer(topic).without(idle_writer)
            say("writer", count, writer)
            aims.is_true(f"{count:,} events: the rows of the writer", writer.digest == two.digest)
    for count in sizes[1:]:
        aims.at_least(f"rate with {count:,} events, of {sizes[0]:,}", rates[count] / rates[sizes[0]], LINEAR_AIM)
        cost = costs[sizes[0]] / costs[count]
        aims.at_least(f"events a second of processor, of {sizes[0]:,}", cost, LINEAR_AIM)


def decoding(spark: Any, count: int, aims: Aims) -> None:
    """Of commits, which most events are."""
    from pyspark.sql.avro.functions import from_avro
    from pyspark.sql.functions import expr

    codec = Codec()
    data = [codec.encode(each) for each in events(count) if isinstance(each, Committed)]
    frame = spark.createDataFrame([(bytearray(each),) for each in data], "value binary").repartition(4).cache()
    frame.count()
    schema = current_schema(Committed).text
    ways = {
        "from_avro": frame.select(from_avro(expr(f"substring(value, {HEADER_BYTES + 1})"), schema).alias("event")),
        "raw": events_of(frame, "Committed", raw=True).select("event"),
        "readable": events_of(frame, "Committed").select("event"),
    }
    rates: dict[str, list[float]] = {name: [] for name in ways}
    costs: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(WARM_UP + ROUNDS):
        for name, each in ways.items():
            began, before = time.perf_counter(), cpu_of_spark(spark)
            each.write.format("noop").mode("overwrite").save()
            if number >= WARM_UP:
                rates[name].append(len(data) / (time.perf_counter() - began))
                costs[name].append((cpu_of_spark(spark) - before) / len(data) * 1e6)
        if number >= WARM_UP:
            words = (f"{name} {rates[name][-1]:>9,.0f}/s {costs[name][-1]:>5.1f} us" for name in ways)
            print("   ".join(words), f"  load {os.getloadavg()[0]:.1f}", flush=True)
    frame.unpersist()
    for name in ("raw", "readable"):
        pairs = zip(rates[name], rates["from_avro"], strict=True)
        ratio = statistics.median(mine / bare for mine, bare in pairs)
        by_cpu = statistics.median(bare / mine for mine, bare in zip(costs[name], costs["from_avro"], strict=True))
        if name == "raw":
            aims.at_least("decoding, of bare from_avro", ratio, DECODING_AIM)
            aims.at_least("the same by processor time", by_cpu, DECODING_AIM)
        else:
            print(f"with readable columns: {ratio:.2f} of bare from_avro, {by_cpu:.2f} by processor time", flush=True)


def cpu_of_spark(spark: Any) -> float:
    """Of the session's JVM and the workers that it started."""
    return cpu_of_tree(spark.sparkContext._gateway.proc.pid)


def writing(stage: Stage, spark: Any, count: int, aims: Aims) -> None:
    """The pipeline within this session beside a bare merge of rows that it made before."""
    from headwater.consumers.spark.pipeline import PipelineOptions, run_pipeline
    from headwater.consumers.spark.pipeline.frames import from_kafka
    from headwater.consumers.spark.pipeline.reading_tasks import BusReading, reading_task
    from headwater.consumers.spark.pipeline.shares import SCHEMA

    topic, keys = stage.topic(count), shuffle_keys(spark, 2)
    servers = {"kafka.bootstrap.servers": stage.kafka, "subscribe": topic, "includeHeaders": "true"}
    bus = BusReading("kafka", "c", topic, topic, 100)
    records = from_kafka(spark.read.format("kafka").options(**servers).load())
    shares = records.mapInArrow(reading_task(bus, keys), SCHEMA).repartition(2, "key")
    packed = shares.rdd.mapPartitions(pack_bucket).cache()
    rows = sum(packed.map(lambda each: each[1]).collect())
    ratios, costs = [], []

    def pipeline(name: str) -> Took:
        def work(url: str, _: str) -> None:
            servers = {"bootstrap.servers": stage.kafka}
            run_pipeline(spark, PipelineOptions(StoreOptions.at(url), topic=name, kafka=servers, buckets=2))

        return stage.turn(work, lambda: cpu_of_spark(spark))

    one = stage.topic(1)
    for number in range(ROUNDS + 1):
        bare = stage.turn(lambda url, _: packed.foreachPartition(bare_writer(url)), lambda: cpu_of_spark(spark))
        start = pipeline(one)
        ours = pipeline(topic).without(start)
        if number:
            say("a query of one event", 1, start)
            ratios.append(bare.wall / ours.wall)
            costs.append(bare.busy / ours.busy)
            say("bare COPY and merge", count, bare)
            say("pipeline", count, ours)
            print(f"rows: bare {rows / bare.wall:>10,.0f}/s   pipeline {rows / ours.wall:>10,.0f}/s", flush=True)
    packed.unpersist()
    aims.at_least("rows a second, of bare COPY and merge", statistics.median(ratios), WRITING_AIM)
    aims.at_least("the same by processor time", statistics.median(costs), WRITING_AIM)


def pack_bucket(rows: Iterable[Any]) -> Iterator[tuple[bytes, int]]:
    merged = MergedShares()
    for row in rows:
        merged.add(Share.unpack(row.data), len(row.data))
    packed = merged.rows
    yield pickle.dumps(packed), sum(len(each.rows) for each in packed)


def bare_writer(url: str) -> Callable[[Iterable[Any]], None]:
    def write(some: Iterable[Any]) -> None:
        target = StoreOptions.at(url).target
        meta = DatabaseBulkMeta(engine_for(target), target.words)
        for data, _ in some:
            meta.merge(WriteBatch(packed=pickle.loads(data)))  # noqa: S301 - our own
        meta.close()

    return write


def main(sizes: Sequence[int], parts: Sequence[str] = PARTS) -> int:
    import pyspark

    aims = Aims()
    home = local.java().home
    packages = ",".join((kafka_package(str(pyspark.__version__)), avro_package()))
    os.environ.update(JAVA_HOME=str(home), SPARK_LOCAL_IP="127.0.0.1")
    with ExitStack() as stack:
        stage = None
        if {"whole", "writing"} & set(parts):
            kafka = stack.enter_context(local.kafka())
            postgres = stack.enter_context(local.postgres(durable=False))
            print(fsync_words(postgres.address), f"load of the machine {os.getloadavg()[0]:.1f}", flush=True)
            jars = {**package_settings(home, packages), "spark.ui.enabled": "false"}
            stage = Stage(kafka.address, postgres.address, jars)
        if stage is not None and "whole" in parts:
            whole(stage, sizes, aims)
        conf = {"spark.jars.packages": packages, "spark.ui.showConsoleProgress": "false"}
        with spark_session(home, **conf) as spark:
            if "decoding" in parts:
                decoding(spark, sizes[0], aims)
            if stage is not None and "writing" in parts:
                writing(stage, spark, sizes[0], aims)
    return aims.report()


if __name__ == "__main__":
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=PARTS, action="append", default=[])
    parser.add_argument("events", type=int, nargs="*", default=EVENTS)
    given = parser.parse_args()
    sys.exit(main(given.events, given.only or PARTS))
