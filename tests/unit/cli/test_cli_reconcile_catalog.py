"""An Iceberg catalog tells `headwater reconcile` which metadata is the current one. The catalog is pyiceberg's own."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table

from headwater.cli import main
from headwater.cli.exits import Exit
from headwater.events import Committed, DatasetId, Format, Output, TableName
from headwater.events.jobs import CommitKind
from headwater.lineage.mapping import map_event
from tests.kit.lineage.scripted_producer import ScriptedProducer
from tests.kit.stores import open_new_store

ROWS: Final = pa.table({"id": pa.array([1], pa.int64())})


class World:
    """A catalog `lake` with the table `db.t`, of whose three appends the store knows the first."""

    def __init__(self, directory: Path) -> None:
        self.properties = {"uri": f"sqlite:///{directory}/catalog.db", "warehouse": f"file://{directory}/warehouse"}
        catalog = SqlCatalog("lake", **self.properties)
        catalog.create_namespace("db")
        self.table: Table = catalog.create_table("db.t", schema=ROWS.schema)
        for _ in range(3):
            self.table.append(ROWS)
        self.snapshots = [each.snapshot_id for each in self.table.snapshots()]
        output = Output(
            dataset=DatasetId(namespace="file://localhost", name=self.table.location().removeprefix("file://")),
            table=TableName(catalog="lake", database="db", table="t"),
            generation=self.table.metadata.table_uuid,
            format=Format.ICEBERG,
            snapshot=self.snapshots[0],
            commit_kind=CommitKind.APPEND,
        )
        self.url = str(directory / "lineage.db")
        producer = ScriptedProducer(1)
        producer.emit(0, Committed, barrier=1, outputs=(output,))
        with open_new_store(self.url) as opened:
            opened.merge(row for event in producer.events for row in map_event(event))

    def reconcile(self, capsys: pytest.CaptureFixture[str], *flags: str, with_catalog: bool = True) -> tuple[int, Any]:
        settings = [f"lake.{key}={value}" for key, value in {"type": "sql", **self.properties}.items()]
        own = [word for each in settings for word in ("--catalog-conf", each)] if with_catalog else []
        code = main(["reconcile", "--all", "--settled", "0s", "-o", "json", "--store", self.url, *own, *flags])
        return code, json.loads(capsys.readouterr().out)

    def fail_a_commit(self) -> None:
        """Leave what a commit leaves that wrote its metadata and didn't get it into the catalog."""
        self.table.append(ROWS)
        current = Path(self.table.metadata_location.removeprefix("file://"))
        self.table.catalog.rename_table("db.t", "db.other")
        self.table.catalog.drop_table("db.other")
        before = sorted(current.parent.glob("*.metadata.json"))[-2]
        self.table.catalog.register_table("db.t", f"file://{before}")


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_commits_that_nobody_reported_are_found_and_repaired(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    code, answer = world.reconcile(capsys)
    found = {(each["snapshot"], each["status"], each["kind"]) for each in answer["commits"]}
    assert found == {(str(each), "UNKNOWN", "APPEND") for each in world.snapshots[1:]}
    assert code == Exit.FAILED
    assert world.reconcile(capsys, "--repair")[0] == Exit.FAILED
    code, answer = world.reconcile(capsys)
    assert (code, answer["commits"], answer["tables"][0]["repaired_before"]) == (Exit.DONE, [], 2)


def test_a_commit_that_failed_is_none_as_the_catalog_knows(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    world.fail_a_commit()
    _, answer = world.reconcile(capsys)
    assert {each["snapshot"] for each in answer["commits"]} == {str(each) for each in world.snapshots[1:]}
    _, answer = world.reconcile(capsys, with_catalog=False)
    statuses = {each["snapshot"]: each["status"] for each in answer["commits"]}
    failed = {snapshot for snapshot, status in statuses.items() if status == "UNCONFIRMED"}
    assert len(statuses) == 3
    assert len(failed) == 1
    assert failed.isdisjoint(map(str, world.snapshots))


def test_a_table_that_the_catalog_has_not_is_an_error(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    world.table.catalog.drop_table("db.t")
    code, answer = world.reconcile(capsys)
    assert code == Exit.USAGE
    assert "the catalog lake has no table db.t" in answer["tables"][0]["error"]


def test_a_catalog_that_does_not_answer_is_an_error(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.rmtree(Path(world.properties["warehouse"].removeprefix("file://")))
    code, answer = world.reconcile(capsys)
    assert code == Exit.USAGE
    assert "the catalog lake didn't answer" in answer["tables"][0]["error"]
