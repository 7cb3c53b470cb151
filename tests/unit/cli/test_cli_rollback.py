"""`headwater rollback` on a small store: the text that people read, the document for programs, what is asked first."""

from __future__ import annotations

import json
import re
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from headwater.cli import main
from headwater.cli.exits import Exit
from headwater.events import Format, JobStarted, Output
from headwater.events.jobs import CommitKind, Committed, OverwriteScope, StreamDetails
from headwater.events.names import JobName
from headwater.versions import spark_tables
from headwater.versions.rollback import session_tables
from tests.kit.lineage.scripted_producer import store
from tests.kit.stores import open_new_store
from tests.kit.versions.corrections import counted, order_warehouse
from tests.kit.versions.memory_tables import ORDERS, REVENUE, MemoryTables

PAGE_TEXT = (Path(__file__).parents[3] / "docs/rollback.md").read_text()


@pytest.fixture
def tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MemoryTables:
    """A store of the warehouse, and tables that take the place of those of a session."""
    url = str(tmp_path / "lineage.db")
    monkeypatch.setenv("HEADWATER_STORE", url)
    with open_new_store(url) as opened, opened.engine.begin() as connection:
        store(connection, counted(order_warehouse().events))
    memory = MemoryTables()

    @contextmanager
    def command_session(properties: Mapping[str, str], command: str, **_: bool) -> Generator[Any]:
        memory.calls.append(f"{command} {dict(properties)}")
        yield SimpleNamespace()

    monkeypatch.setattr(spark_tables, "command_session", command_session)
    monkeypatch.setattr(session_tables, "SessionTables", lambda *_: memory)
    return memory


TO = ["rollback", "to", "orders@3", "--chain"]


def document(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    main([*words, "-o", "json"])
    return json.loads(capsys.readouterr().out)


def test_the_plan_of_the_guide_is_shown_as_it_stands_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    story = order_warehouse()
    where: dict[str, Any] = {**story.where({"table": "export", "branch": None}), "format": Format.PARQUET}
    exported, sink = story.source("revenue@2", {}), Output(**where, made_from=(0,))
    story.emit(12, Committed, barrier=90, inputs=(exported,), outputs=(sink,), job=JobName(name="export"))
    stream = StreamDetails(query=UUID(int=77), checkpoint="/checkpoints/copy")
    job: dict[str, Any] = {"job": JobName(name="copy"), "run": UUID(int=5)}
    story.emit(12, JobStarted, job_type="STREAMING", scope="QUERY", stream=stream, **job)
    for batch, read in enumerate(("orders@3", "orders@3..5")):
        copied = Output(
            **story.where({"table": "copy", "branch": None}),
            snapshot=batch + 1,
            parent=batch or None,
            commit_kind=CommitKind.APPEND,
            replaced=OverwriteScope.NOTHING,
            made_from=(0,),
        )
        inputs = (story.source(read, {}),)
        batch_of: dict[str, Any] = {"batch_id": batch, "incarnation": UUID(int=77)}
        story.emit(13 + batch, Committed, barrier=95 + batch, inputs=inputs, outputs=(copied,), **batch_of, **job)
    url = str(tmp_path / "guide.db")
    with open_new_store(url) as opened, opened.engine.begin() as connection:
        store(connection, counted(story.events))
    monkeypatch.setenv("HEADWATER_STORE", url)
    assert main([*TO, "--dry-run"]) == Exit.FAILED
    shown = re.search(r"\$ headwater rollback to orders@3 --chain --dry-run\n(.*?)```", PAGE_TEXT, re.DOTALL)
    assert shown is not None
    assert capsys.readouterr().out == shown[1]


def test_nothing_is_done_unless_somebody_agrees(tables: MemoryTables, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*TO, "--partial"]) == Exit.CONFIGURATION
    assert "Roll 3 tables back, and lose 5 commits? There is no terminal" in capsys.readouterr().err
    assert main([*TO, "--dry-run"]) == Exit.FAILED
    assert "this was a dry run" in capsys.readouterr().out
    assert (tables.rows, tables.calls) == ([5, 3, 2], ["headwater rollback {}"])


def test_what_cannot_go_back_stops_it_unless_that_is_wanted(
    tables: MemoryTables, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*TO, "--yes"]) == Exit.FAILED
    assert "1 of what has, or may have, something of what is rolled back can't go back" in capsys.readouterr().err
    assert tables.rows == [5, 3, 2]
    assert main([*TO, "--yes", "--partial", "--conf", "spark.a=b"]) == Exit.DONE
    said = capsys.readouterr().out
    assert "roll back of lake.db.orders: done" in said
    assert (tables.rows, tables.calls[1:]) == ([3, 1, 1], ["headwater rollback {'spark.a': 'b'}"])


def test_snapshots_that_have_expired_stop_it_and_are_shown_by_a_dry_run_that_may_look(
    tables: MemoryTables, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing else shows a table of the chain whose snapshot has gone, and one that the user named."""
    tables.expired.add((ORDERS, 3))
    assert main([*TO, "--yes", "--partial"]) == Exit.CONFIGURATION
    said = capsys.readouterr().err
    assert "lake.db.orders can't go back to 3, so nothing was done: it has expired. Name a snapshot" in said
    tables.expired = {(REVENUE, 1)}
    assert main([*TO, "--dry-run"]) == Exit.FAILED
    said = capsys.readouterr().out
    assert "3 tables to roll back" in said
    assert "whether snapshots have expired wasn't looked at (--properties-file or --conf lets it)" in said
    assert main([*TO, "--dry-run", "--conf", "spark.a=b"]) == Exit.FAILED
    said = capsys.readouterr().out
    assert "2 tables to roll back (4 commits lost), 2 can't go back" in said
    assert "lake.db.revenue\n      1 is its newest snapshot without what is rolled back, and it can't go back" in said
    assert main([*TO, "--yes"]) == Exit.FAILED
    assert tables.rows == [5, 3, 2]
    assert main([*TO, "--yes", "--partial"]) == Exit.DONE
    assert tables.rows == [3, 1, 2]


def test_a_roll_back_is_listed_shown_and_undone(tables: MemoryTables, capsys: pytest.CaptureFixture[str]) -> None:
    found = document(capsys, *TO, "--yes", "--partial")
    name = found["name"]
    assert (found["done"], found["plan"]["commits"], found["plan"]["lost"]["rows"]) == (True, 5, 400)
    assert [each["name"] for each in document(capsys, "rollback", "list")["rollbacks"]] == [name]
    shown = document(capsys, "rollback", "show", name)
    assert shown["rollback"]["state"] == "ROLLED_BACK"
    assert {step["state"] for step in shown["steps"]} == {"DONE"}
    assert main(["rollback", "show", name]) == Exit.DONE
    assert "What goes back, in this order" in capsys.readouterr().out
    assert main(["rollback", "resume", name]) == Exit.DONE
    assert "there is nothing to do" in capsys.readouterr().out
    assert main(["rollback", "undo", name, "--dry-run"]) == Exit.DONE
    assert tables.rows == [3, 1, 1]
    assert main(["rollback", "undo", name, "--yes"]) == Exit.DONE
    assert tables.rows == [5, 3, 2]


def test_what_is_asked_wrongly_says_what_to_do(tables: MemoryTables, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rollback", "to", "--dry-run"]) == Exit.CONFIGURATION
    assert "Name a table as TABLE@SNAPSHOT, or --data-version GROUP@N" in capsys.readouterr().err
    assert main(["rollback", "show", "r-x"]) == Exit.CONFIGURATION
    assert "the store knows no roll-back r-x" in capsys.readouterr().err
    assert tables.calls == []


def test_without_the_chain_what_no_longer_belongs_is_named(
    tables: MemoryTables, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["rollback", "to", "orders@3", "--dry-run"]) == Exit.FAILED
    said = capsys.readouterr().out
    assert "! lake.db.details@3: 1 is its newest snapshot without it; --chain takes it back, too" in said
    assert "Plan: 1 table to roll back (2 commits lost), 3 left." in said
    assert tables.rows == [5, 3, 2]
