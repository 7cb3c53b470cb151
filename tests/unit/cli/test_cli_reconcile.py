"""`headwater reconcile` on a small store, beside a Delta log that is written by hand."""

from __future__ import annotations

import json
import shutil
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from headwater.cli import main
from headwater.cli.exits import Exit
from headwater.events import AlterTable, Committed, DatasetId, Event, Format, LineageDeleted, Output, TableName
from headwater.events.administration import LineageScope
from headwater.events.catalog import CatalogContext
from headwater.events.jobs import CommitKind, OverwriteScope
from headwater.lineage.client import Lineage
from headwater.lineage.questions.answers import LimitReason
from headwater.lineage.store import open_store
from tests.kit.lineage.scripted_producer import ScriptedProducer, at, store
from tests.kit.stores import open_new_store

TABLE = UUID("9c12d441-03fe-4693-9a96-a0705ddf6901")
OTHER = UUID("9c12d441-03fe-4693-9a96-a0705ddf6902")


class World:
    """A store, and a table of Delta's whose versions were committed a minute apart from 12:00 on."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.url = str(directory / "lineage.db")
        self.producer = ScriptedProducer(1)
        self.table = directory / "t"

    @property
    def place(self) -> dict[str, Any]:
        return {
            "dataset": DatasetId(namespace="s3://lake", name="t"),
            "table": TableName(catalog="lake", database="db", table="t"),
            "format": Format.DELTA,
        }

    def logged(self, *numbers: int, generation: UUID = TABLE, when: datetime | None = None) -> None:
        for number in numbers:
            made = int((when or at(number)).timestamp() * 1000)
            actions: list[dict[str, Any]] = [{"commitInfo": {"timestamp": made, "operation": "WRITE"}}]
            if number == 0:
                actions.append({"metaData": {"id": str(generation)}})
            file = self.table / "_delta_log" / f"{number:020}.json"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("".join(f"{json.dumps(each)}\n" for each in actions))

    def committed(
        self, number: int | None, *, generation: UUID = TABLE, minutes: float | None = None, **more: Any
    ) -> Committed:
        parent = number - 1 if number else None
        output = Output(
            **self.place,
            generation=generation,
            snapshot=number,
            parent=parent,
            commit_kind=CommitKind.APPEND,
            replaced=OverwriteScope.NOTHING,
            made_from=(),
            **more,
        )
        when = minutes if minutes is not None else number or 0
        return self.producer.emit(when + 0.1, Committed, barrier=1000 + self.producer._sequence, outputs=(output,))

    def stored(self, *events: Event) -> None:
        with open_store(self.url) as opened, opened.engine.begin() as connection:
            store(connection, events or self.producer)


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setenv("HEADWATER_STORE", str(tmp_path / "lineage.db"))
    found = World(tmp_path)
    with open_new_store(found.url):
        pass
    return found


def run(world: World, capsys: pytest.CaptureFixture[str], *flags: str) -> tuple[int, dict[str, str], dict[str, Any]]:
    """The exit code, the status of each commit that is shown, and the line about the first table."""
    which = () if "--all" in flags else ("db.t",)
    code = main(["reconcile", *which, *flags, "--place", f"s3://lake={world.directory}", "-o", "json"])
    answer = json.loads(capsys.readouterr().out)
    return code, {each["snapshot"]: each["status"] for each in answer["commits"]}, answer["tables"][0]


def test_commits_that_nobody_reported_are_listed(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    """3 was lost. That 0 has expired in the log is no difference, and 5 is on a table that was dropped before."""
    for number in (0, 1, 2, 4):
        world.committed(number)
    world.committed(5, generation=OTHER)
    world.stored()
    world.logged(*range(6))
    assert run(world, capsys)[:2] == (Exit.FAILED, {"3": "UNKNOWN", "5": "UNKNOWN"})
    (world.table / "_delta_log" / f"{1:020}.json").unlink()
    code, found, table = run(world, capsys, "--all")
    assert (code, found) == (Exit.FAILED, {"3": "UNKNOWN", "5": "UNKNOWN"})
    assert (table["format"], table["commits_in_its_log"], table["unknown"]) == ("DELTA", 5, 2)
    assert main(["reconcile", "db.t", "--place", f"s3://lake={world.directory}"]) == Exit.FAILED
    assert "Commits that nobody reported" in capsys.readouterr().out


def test_with_every_commit_known_the_exit_code_is_0(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    """A change of the schema made a version too, and of a statement's commit a driver knew only what it may be."""
    world.committed(0)
    context = CatalogContext(name="lake", class_name="org.apache.spark.sql.delta.catalog.DeltaCatalog")
    world.producer.emit(
        1.2,
        AlterTable,
        context=context,
        identifier=world.place["table"],
        dataset=world.place["dataset"],
        generation=TABLE,
        produced=1,
        parent=0,
    )
    world.committed(None, minutes=2, candidates=(2, 3))
    world.stored()
    world.logged(*range(4))
    assert run(world, capsys)[:2] == (Exit.DONE, {})


def test_a_repair_is_exact_about_the_output_and_says_that_the_inputs_are_unknown(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    world.committed(0)
    world.stored()
    world.logged(0, 1)
    assert run(world, capsys, "--repair")[0] == Exit.FAILED
    code, found, table = run(world, capsys, "--repair")
    assert (code, found, table["repaired_before"]) == (Exit.DONE, {}, 1)
    with Lineage.open(world.url) as lineage:
        answer = lineage.upstream_snapshots("db.t", 1)
        assert not answer.rows
        [limit] = answer.limits
        assert limit.why is LimitReason.UNKNOWN_SOURCES
        assert "no driver reported it" in limit.detail
        assert not lineage.upstream_snapshots("db.t", 0).limits


def test_two_repairs_are_one(world: World, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """They give the same event, so whoever repairs from another machine makes no second commit."""
    world.committed(0)
    world.stored()
    world.logged(0, 1)
    shutil.copy(world.url, tmp_path / "copy.db")
    run(world, capsys, "--repair", "--bus", f"log:{tmp_path / 'bus'}")
    run(world, capsys, "--repair", "--bus", f"log:{tmp_path / 'bus'}")
    assert main(["events", "cat", "--from", f"log:{tmp_path / 'bus'}", "-o", "json"]) == Exit.DONE
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["evidence"] for line in lines] == ["RECONCILED"] * 2
    assert len({(line["producer"], line["sequence"], line["barrier"]) for line in lines}) == 1


def test_what_is_young_may_be_on_its_way(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    world.committed(0)
    world.stored()
    world.logged(0)
    now = datetime.now(timezone.utc)
    world.logged(1, when=now - timedelta(minutes=30))
    world.logged(2, when=now - timedelta(minutes=1))
    assert run(world, capsys)[:2] == (Exit.FAILED, {"1": "UNKNOWN", "2": "UNSETTLED"})
    assert run(world, capsys, "--settled", "1h")[:2] == (Exit.DONE, {"1": "UNSETTLED", "2": "UNSETTLED"})
    assert run(world, capsys, "--settled", "0s", "--since", "10m")[1] == {"2": "UNKNOWN"}


def test_what_was_deleted_is_not_brought_back(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    world.committed(0)
    world.committed(2)
    world.stored()
    gone = world.producer.emit(9, LineageDeleted, scope=LineageScope.DATA, before=at(1.5))
    world.stored(gone)
    world.logged(*range(4))
    code, found, table = run(world, capsys)
    assert (code, found, table["deleted"]) == (Exit.FAILED, {"3": "UNKNOWN"}, 1)


def test_a_log_that_cannot_be_read_is_neither_a_difference_nor_none(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    world.committed(0)
    world.stored()
    code, _, table = run(world, capsys, "--all")
    assert code == 2
    assert "there is no log" in table["error"]
    assert main(["reconcile"]) == Exit.CONFIGURATION
    assert "say --all" in capsys.readouterr().err
