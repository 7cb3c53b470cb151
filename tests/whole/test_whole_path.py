"""The whole path: `spark-submit` of a script that nobody changed -> spool -> Kafka -> the writer -> PostgreSQL
-> questions, on each format, batch and streaming.

Truth: what the script does, by hand, and the formats' own files. Nothing of headwater's.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from headwater.events.jobs import JobStatus
from headwater.lineage import Lineage
from headwater.lineage.questions.lineage_answers import DatasetVersion, SnapshotEdge, VersionRange
from headwater.lineage.questions.names import UnknownNameError
from headwater.local import Service
from tests.kit.drivers import BIN, Place
from tests.kit.formats.iceberg_truth import metadata_at
from tests.kit.spark.driver import DELTA, ICEBERG, PAIMON, PLAIN, Extensions
from tests.kit.stores import database_on
from tests.kit.whole.shop import (
    COLUMNS,
    DOOMED,
    NEXT,
    SHOP,
    TABLES,
    Edge,
    Kept,
    downstream_of_products,
    upstream_of_top,
)
from tests.kit.whole.way import PATIENCE, Way, settled, way_to

pytestmark = [
    pytest.mark.slow,
    pytest.mark.spark,
    pytest.mark.spark3,
    pytest.mark.kafka,
    pytest.mark.database,
    pytest.mark.timeout(900),  # of which most is the time that Spark takes to start
]


@dataclass(frozen=True)
class Format:
    provider: str
    catalog: str
    extensions: Extensions
    warehouse: str

    @property
    def conf(self) -> dict[str, str]:
        """Of Iceberg: a stream has a session of its own, whose commits the script's is to see at once. Of Delta: it
        spreads a log of some lines over 50 tasks."""
        own = {
            "iceberg": {"sql__catalog__ice__cache-enabled": "false"},
            "delta": {"databricks__delta__snapshotPartitions": "2"},
        }
        return own.get(self.provider, {})


FORMATS = [
    Format("iceberg", "ice", ICEBERG, "ice"),
    Format("delta", "spark_catalog", DELTA, "spark"),
    Format("paimon", "pai", PAIMON, "pai"),
]


@pytest.fixture(scope="module")
def way(kafka: Service, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Way]:
    with database_on("postgres", request, tmp_path_factory.mktemp("store")) as url, way_to(kafka.address, url) as way:
        yield way


@dataclass(frozen=True)
class Shop:
    """A format's shop after its script ran, and what the format's files say of it."""

    way: Way
    format: Format
    database: Path
    kept: Kept

    def table(self, name: str) -> str:
        return f"{self.format.catalog}.shop.{name}"


@pytest.fixture(
    scope="module",
    params=[FORMATS[0], *(pytest.param(each, marks=pytest.mark.long) for each in FORMATS[1:])],
    ids=lambda each: each.provider,
)
def shop(way: Way, java_home: Path, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Shop:
    wanted: Format = request.param
    place = way.place(tmp_path_factory.mktemp("shop") / wanted.provider, java_home, wanted.extensions, **wanted.conf)
    database = place.folder / wanted.warehouse / ("shop" if wanted.provider == "iceberg" else "shop.db")
    ended = way.submit(place, SHOP, wanted.catalog, wanted.provider, str(place.folder / wanted.warehouse))
    assert "handled: " in ended.out
    way.ship(place)
    way.until_stored()
    return Shop(way, wanted, database, kept(wanted.provider, database))


@pytest.fixture
def lineage(shop: Shop) -> Iterator[Lineage]:
    with Lineage.open(shop.way.url) as lineage:
        yield lineage


def edge(each: SnapshotEdge) -> Edge:
    return (last(each.target), each.target.snapshot, last(each.source), each.source.snapshot, each.since)


def last(version: DatasetVersion | VersionRange) -> str:
    """A table's own name."""
    assert version.dataset is not None, version
    return str(version.dataset.name.rpartition("/")[2])


def test_the_script_did_what_is_checked_here(shop: Shop) -> None:
    counts = {name: len(getattr(shop.kept, name)) for name in ("orders", "products", "details", "revenue", "top")}
    assert counts == {"orders": 2, "products": 1, "details": 2, "revenue": 2, "top": 1}


def test_which_tables_it_was_made_from(shop: Shop, lineage: Lineage) -> None:
    found = lineage.upstream_tables(shop.table("top"))
    assert {(each.target.label, each.source.label) for each in found} == {
        (shop.table(target), shop.table(source)) for target, source in TABLES
    }
    found = lineage.downstream_tables(shop.table("orders"))
    assert {each.target.label for each in found} == {shop.table(name) for name in ("details", "revenue", "top")}


def test_which_snapshots_it_was_made_from_through_the_chain(shop: Shop, lineage: Lineage) -> None:
    found = lineage.upstream_snapshots(shop.table("top"), shop.kept.top[0])
    assert {edge(each) for each in found} == upstream_of_top(shop.kept)
    assert len(found) == len(TABLES)
    assert not found.limits
    jobs = {last(each.target): each.job for each in found}
    stream, application = f"revenue_{shop.format.provider}", f"shop_{shop.format.provider}"
    assert jobs["revenue"] == stream
    assert jobs["details"] == f"{application}.{shop.table('details')}"
    assert {each.parent_job for each in found if each.job != stream} == {application}


def test_what_was_made_of_a_snapshot(shop: Shop, lineage: Lineage) -> None:
    found = lineage.downstream_snapshots(shop.table("products"), shop.kept.products[0])
    assert {edge(each) for each in found} == downstream_of_products(shop.kept)


def test_what_is_in_it_is_both_batches(shop: Shop, lineage: Lineage) -> None:
    found = lineage.upstream_state(shop.table("revenue"), shop.kept.revenue[1], depth=1)
    (only,) = found
    assert (last(only.source), only.source.first, only.source.last, only.commits) == ("details", *shop.kept.details, 2)


def test_which_columns_it_was_made_from(shop: Shop, lineage: Lineage) -> None:
    found = lineage.upstream_columns(shop.table("top"), "total", indirect=False)
    prefix = f"{shop.format.catalog}.shop."
    emitted = {(e.target.label.removeprefix(prefix), e.source.label.removeprefix(prefix), e.derivation) for e in found}
    assert emitted == COLUMNS


def test_runs_how_they_ended_and_what_failed(shop: Shop, lineage: Lineage) -> None:
    name = f"shop_{shop.format.provider}"
    (application,) = [each for each in lineage.runs(name) if each.job == name]
    assert (application.status, application.inferred) == (JobStatus.ENDED, False)
    streams = [each for each in lineage.runs(f"revenue_{shop.format.provider}") if each.job != name]
    assert [each.status for each in streams] == [JobStatus.FINISHED] * 2
    (failed,) = application.failures
    assert "RuntimeException" in failed.error
    assert "no rate for EUR" not in failed.error, "a user's own words may hold values"
    assert [each.rpartition("/")[2].rpartition(".")[2] for each in failed.outputs] == ["details"]


def test_what_was_done_to_the_schema(shop: Shop, lineage: Lineage) -> None:
    before, after = SCHEMAS[shop.format.provider](shop.database / "orders")
    assert [name for name in after if name not in before] == ["note"]
    done = [(each.kind, each.is_known) for each in lineage.history(shop.table("orders"))]
    assert sorted(done) == [("AlterTable", True), ("CreateTable", True)]
    changes = lineage.schema_changes(shop.table("orders"), *shop.kept.orders)
    assert [(each.column, each.did.value) for each in changes] == [("note", "ADDED")]


def test_the_command_line_says_the_same(shop: Shop) -> None:
    ended = shop.way.ask("lineage", "upstream", f"{shop.table('top')}@{shop.kept.top[0]}", "-o", "json")
    assert ended.returncode == 0, ended.stderr
    answer = json.loads(ended.stdout)
    emitted = {
        (
            each["target"]["dataset"]["name"].rpartition("/")[2],
            int(each["target"]["snapshot"]),
            each["source"]["dataset"]["name"].rpartition("/")[2],
            int(each["source"]["snapshot"]),
            None if each["since"] is None else int(each["since"]),
        )
        for each in answer["edges"]
    }
    assert emitted == upstream_of_top(shop.kept)
    ended = shop.way.ask("job", "runs", f"shop_{shop.format.provider}")
    assert ended.returncode == 0, ended.stderr
    assert "RuntimeException" in ended.stdout
    assert "ENDED" in ended.stdout


@pytest.mark.long
def test_a_driver_that_is_killed_is_reported_by_who_finds_its_spool(way: Way, java_home: Path, tmp_path: Path) -> None:
    """While it ran the broker couldn't be reached, so all that it reported is in its spool."""
    place = way.place(tmp_path / "doomed", java_home, PLAIN)
    settled(place, headwater__kafka__bootstrap__servers="127.0.0.1:1")
    killed_in_mid_run(place)
    copy = way.place(tmp_path / "copy", java_home, PLAIN)
    shutil.copytree(place.folder / "spool", copy.folder / "spool")

    settled(place, headwater__kafka__bootstrap__servers=way.broker)
    way.submit(place, NEXT, str(place.folder / "spool"))
    way.ship(place)
    way.until_stored()
    with Lineage.open(way.url) as lineage:
        (run,) = lineage.runs("doomed")
        assert (run.status, run.inferred) == (JobStatus.KILLED, True)
        found = lineage.upstream_tables("spark_catalog.default.found")
        assert [each.source.label for each in found] == ["spark_catalog.default.lost"]
        with pytest.raises(UnknownNameError):
            lineage.upstream_tables("spark_catalog.default.never")

    before = way.digest()
    way.ship(copy)
    assert not list((copy.folder / "spool").glob("*/*.segment"))
    way.until_stored()
    assert way.digest() == before, "whoever ships it tells the same"


def killed_in_mid_run(place: Place) -> None:
    """Python and the JVM, once the driver says where it is."""
    with place.start([BIN / "spark-submit", place.script(DOOMED)]) as process:
        assert process.stdout is not None
        words = next((line.split() for line in process.stdout if line.startswith("settled ")), [])
        for pid in words[1:]:
            os.kill(int(pid), signal.SIGKILL)
        process.kill()
        _, err = process.communicate(timeout=PATIENCE)
    assert words, err[-3000:]


# What the files of Iceberg, Delta and Paimon say of a table, read without Spark and without headwater.


def iceberg(table: Path) -> list[int]:
    return metadata_at(table).ids


def delta(table: Path) -> list[int]:
    """Versions that added data: those of CREATE TABLE and ALTER TABLE have none."""
    return [version for version, actions in _log(table) if any("add" in action for action in actions)]


def paimon(table: Path) -> list[int]:
    files = (table / "snapshot").glob("snapshot-*")
    return sorted(int(file.name.removeprefix("snapshot-")) for file in files)


def iceberg_columns(table: Path) -> list[list[str]]:
    """Of each schema, in their order."""
    schemas = sorted(metadata_at(table).content["schemas"], key=lambda each: int(each["schema-id"]))
    return [[field["name"] for field in each["fields"]] for each in schemas]


def delta_columns(table: Path) -> list[list[str]]:
    emitted = [
        action["metaData"]["schemaString"] for _, actions in _log(table) for action in actions if "metaData" in action
    ]
    return [[field["name"] for field in json.loads(each)["fields"]] for each in emitted]


def paimon_columns(table: Path) -> list[list[str]]:
    files = sorted((table / "schema").glob("schema-*"), key=lambda file: int(file.name.removeprefix("schema-")))
    return [[field["name"] for field in json.loads(file.read_text())["fields"]] for file in files]


def _log(table: Path) -> Iterator[tuple[int, list[dict[str, Any]]]]:
    for file in sorted((table / "_delta_log").glob("*.json")):
        yield int(file.stem), [json.loads(line) for line in file.read_text().splitlines()]


VERSIONS: Final[dict[str, Callable[[Path], list[int]]]] = {"iceberg": iceberg, "delta": delta, "paimon": paimon}
SCHEMAS: Final = {"iceberg": iceberg_columns, "delta": delta_columns, "paimon": paimon_columns}


def kept(provider: str, database: Path) -> Kept:
    read = VERSIONS[provider]
    return Kept(**{name: read(database / name) for name in ("orders", "products", "details", "revenue", "top")})
