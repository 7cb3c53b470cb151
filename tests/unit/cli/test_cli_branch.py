"""`headwater branch` up to the session: what is asked, what is refused, and how it is given."""

from __future__ import annotations

import json
import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from headwater.cli import main
from headwater.cli.exits import Exit
from headwater.events.catalog import CreateBranch, DropBranch
from headwater.lineage.store import open_store
from headwater.testing.examples import CONTEXT
from headwater.versions import spark_tables
from headwater.versions.aligned.claims import GroupClaims
from headwater.versions.branches import Branch, manager
from headwater.versions.cuts import Cut, TableSnapshot
from tests.kit.lineage.scripted_producer import ScriptedProducer, place, store
from tests.kit.versions.memory_branches import MemoryBranches


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> MemoryBranches:
    """A table that takes the place of each one, and a session that is none."""
    monkeypatch.delenv("HEADWATER_STORE", raising=False)
    memory = MemoryBranches()

    @contextmanager
    def command_session(properties: Mapping[str, str], command: str, **_: bool) -> Generator[Any]:
        memory.calls.append(f"{command} {dict(properties)}")
        yield SimpleNamespace()

    monkeypatch.setattr(spark_tables, "command_session", command_session)
    monkeypatch.setattr(manager, "branches_of", lambda *_: memory)
    monkeypatch.setattr(manager, "driver_report", lambda _: None)
    return memory


CREATE = ["branch", "create", "lake.db.t", "fix", "--tag", "eod"]


def test_a_branch_is_made_listed_merged_and_deleted(table: MemoryBranches, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*CREATE, "--conf", "spark.a=b"]) == Exit.DONE
    said = capsys.readouterr().out
    assert "write and read lake.db.t.branch_fix" in said
    assert "Nobody records that: name a store by --store" in said
    assert "headwater branch create {'spark.a': 'b'}" in table.calls
    assert main(["branch", "list", "lake.db.t", "-o", "json"]) == Exit.DONE
    row = json.loads(capsys.readouterr().out)["branches"][0]
    assert (row["name"], row["tag_name"], row["tagged_snapshot_id"]) == ("fix", "eod", "3")
    assert main(["branch", "merge", "lake.db.t", "fix", "--main", "5", "--yes", "-o", "json"]) == Exit.DONE
    found = json.loads(capsys.readouterr().out)
    assert (found["main"]["snapshots_that_main_loses"], found["snapshot"], table.head) == (["5", "4"], "7", 7)
    assert table.forgotten == []
    assert main(["branch", "replace-main", "lake.db.t", "fix", "--yes"]) == Exit.DONE
    assert len(table.forgotten) == 1
    assert main(["branch", "delete", "lake.db.t", "fix", "--yes"]) == Exit.DONE
    assert table.there == {}


@pytest.mark.usefixtures("capfd")
def test_answers_are_on_standard_output(table: MemoryBranches, monkeypatch: pytest.MonkeyPatch) -> None:
    """While Java starts, what it says goes to standard error instead. By then that has to be over."""
    create, seen = table.create, list[bool]()

    def look_and_create(branch: Branch) -> None:
        seen.append(os.path.sameopenfile(1, 2))
        create(branch)

    monkeypatch.setattr(table, "create", look_and_create)
    assert main(CREATE) == Exit.DONE
    assert seen == [False]


def test_nothing_is_done_in_a_dry_run_or_unless_somebody_agrees(
    table: MemoryBranches, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*CREATE, "--dry-run"]) == Exit.DONE
    assert table.there == {}
    assert main(CREATE) == Exit.DONE
    for verb in ("merge", "replace-main", "delete"):
        assert main(["branch", verb, "lake.db.t", "fix", "--dry-run"]) == Exit.DONE
        assert "this was a dry run" in capsys.readouterr().out
        assert main(["branch", verb, "lake.db.t", "fix"]) == Exit.CONFIGURATION
        assert "give --yes, or --dry-run" in capsys.readouterr().err
    assert (table.head, list(table.there)) == (5, ["fix"])


@pytest.mark.usefixtures("table")
def test_what_is_missing_or_wrong_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    for words, code, text in (
        (["create", "lake.db.t", "fix"], Exit.CONFIGURATION, "from which tag of main? Name it by --tag"),
        (["create", "lake.db.t", "a.b", "--tag", "eod"], Exit.CONFIGURATION, "a dot stands between"),
        (["create", "lake.db.t", "fix", "--tag", "late"], Exit.CONFIGURATION, "there is no tag late"),
        (["merge", "lake.db.t", "fix", "--yes"], Exit.CONFIGURATION, "has no branch 'fix'"),
        (["check-expiry", "lake.db.t"], Exit.CONFIGURATION, "Say --older-than TIME"),
    ):
        assert main(["branch", *words]) == code
        assert text in capsys.readouterr().err


def test_main_that_is_elsewhere_is_a_failure(table: MemoryBranches, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(CREATE) == Exit.DONE
    assert main(["branch", "merge", "lake.db.t", "fix", "--main", "4", "--yes"]) == Exit.FAILED
    assert "is at 5, and not at 4" in capsys.readouterr().err
    assert table.head == 5


@pytest.mark.usefixtures("table")
def test_an_expiry_that_takes_something_from_a_branch_has_an_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    check = ["branch", "check-expiry", "lake.db.t", "--older-than", "2030-01-01"]
    assert main(check) == Exit.DONE
    assert main(CREATE) == Exit.DONE
    capsys.readouterr()
    assert main([*check, "-o", "json"]) == Exit.FAILED
    found = json.loads(capsys.readouterr().out)["risks"]
    assert found == [{"branch": "fix", "snapshot": "3", "what_it_would_lose": "older than 2030"}]


@pytest.mark.usefixtures("table")
def test_an_expiry_is_checked_for_aligned_jobs_whose_store_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a store it is said that they weren't asked: an answer of nothing would be taken for all."""
    check = ["branch", "check-expiry", "lake.db.t", "--older-than", "2030-01-01"]
    assert main(check) == Exit.DONE
    assert "Corrections and aligned jobs weren't asked" in capsys.readouterr().out
    with open_store(f"sqlite:///{tmp_path / 'lineage.db'}") as opened:
        claims = GroupClaims(opened, "shop")
        claims.enter(["lake.db.t"])
        claims.claim(1, Cut({"lake.db.t": TableSnapshot(4)}), "details")
    check += ["--store", f"sqlite:///{tmp_path / 'lineage.db'}"]
    assert main([*check, "-o", "json"]) == Exit.FAILED
    said = capsys.readouterr()
    assert "weren't asked" not in said.err
    (risk,) = json.loads(said.out)["risks"]
    assert (risk["branch"], risk["snapshot"]) == ("main", "4")
    assert "newest data version of the group shop" in risk["what_it_would_lose"]


def test_branches_that_were_recorded_are_listed_without_spark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the time of the last creation: one name was dropped and taken again."""
    producer = ScriptedProducer(1)
    known = place("daily")
    about = {"context": CONTEXT, "identifier": known["table"], "dataset": known["dataset"], "generation": "1"}
    producer.emit(1, CreateBranch, branch="fix", tag="eod", snapshot=3, **about)
    producer.emit(2, DropBranch, branch="fix", **about)
    producer.emit(3, CreateBranch, branch="fix", tag="late", snapshot=5, **about)
    producer.emit(4, CreateBranch, branch="gone", tag="eod", snapshot=3, **about)
    producer.emit(5, DropBranch, branch="gone", **about)
    monkeypatch.setenv("HEADWATER_STORE", f"sqlite:///{tmp_path / 'lineage.db'}")
    with open_store(f"sqlite:///{tmp_path / 'lineage.db'}") as opened, opened.engine.begin() as connection:
        store(connection, producer)
    assert main(["branch", "list", "sales.daily", "--recorded", "-o", "json"]) == Exit.DONE
    rows = json.loads(capsys.readouterr().out)["branches"]
    times = [(row["name"], row["tag_name"], row["tagged_snapshot_id"], row["create_time"][11:16]) for row in rows]
    assert times == [("fix", "late", "5", "12:03"), ("gone", "eod", "3", "12:04")]
    assert [row["ended"] and row["ended"][11:16] for row in rows] == [None, "12:05"]
