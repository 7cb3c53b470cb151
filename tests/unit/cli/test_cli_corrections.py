"""`headwater correct begin` to `abort` on tables in memory: what is asked, made, given and refused."""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from headwater.cli import main
from headwater.cli.exits import Exit
from headwater.versions import spark_tables
from headwater.versions.correction.execution import reruns
from headwater.versions.correction.execution import spark_tables as correction_tables
from tests.kit.lineage.scripted_producer import store
from tests.kit.stores import open_new_store
from tests.kit.versions.corrections import order_warehouse
from tests.kit.versions.memory_correction import MemoryRunner, MemoryTable, MemoryTables

ORDERS, DETAILS, TOP10, REVENUE = (f"lake.db.{name}" for name in ("orders", "details", "top10", "revenue"))
COMMANDS = "".join(f'[jobs.{name}]\nrun = "{name}.py"\n' for name in ("details", "revenue", "top10"))


@pytest.fixture
def tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MemoryTables:
    """A store in which orders@4 is wrong, with tables that take the place of Spark's."""
    monkeypatch.setenv("HEADWATER_STORE", str(tmp_path / "lineage.db"))
    monkeypatch.chdir(tmp_path)
    with open_new_store(str(tmp_path / "lineage.db")) as opened, opened.engine.begin() as connection:
        store(connection, order_warehouse())
    memory = MemoryTables(
        {
            ORDERS: MemoryTable({3: (1,), 4: (1, 999), 5: (1, 999, 7)}),
            DETAILS: MemoryTable({1: (10,), 2: (10, 9990), 3: (10, 9990, 70)}),
            REVENUE: MemoryTable({1: (10,), 2: (10_000,)}),
            TOP10: MemoryTable({1: (10_000,)}),
        }
    )
    runner = MemoryRunner(memory, {f"{name}.py": _add_one for name in ("details", "revenue", "top10")})

    @contextmanager
    def command_session(properties: Mapping[str, str], command: str, **_: bool) -> Generator[Any]:
        yield None

    monkeypatch.setattr(spark_tables, "command_session", command_session)
    monkeypatch.setattr(correction_tables, "SparkCorrectionTables", lambda *_: memory)
    monkeypatch.setattr(reruns.JobRunner, "run", lambda _, *words, **flags: runner.run(*words, **flags))
    return memory


def _add_one(mirrors: dict[str, MemoryTable]) -> None:
    for table in mirrors.values():
        table.add(1)


def ask(capsys: pytest.CaptureFixture[str], *words: str, code: Exit = Exit.DONE) -> Any:
    assert main(["correct", *words, "-o", "json"]) == code
    return json.loads(capsys.readouterr().out)


def test_the_life_of_a_correction(tmp_path: Path, tables: MemoryTables, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "correction.toml").write_text(COMMANDS)
    dry = ask(capsys, "begin", "orders@4", "--dry-run")
    assert (dry["obstacles"], tables.mirrors, ask(capsys, "list")["corrections"]) == ([], {}, [])
    begun = ask(capsys, "begin", "orders@4")
    name = begun["correction"]
    assert [(each["table"], each["takes_account_of"]) for each in begun["mirrors"]] == [
        *((ORDERS, "4"), (DETAILS, "1"), (REVENUE, "2"), (TOP10, "1")),
    ]
    [listed] = ask(capsys, "list")["corrections"]
    assert (listed["name"], listed["table"], listed["snapshot"], listed["state"]) == (name, ORDERS, "4", "OPEN")
    assert listed["next"] == f"headwater correct sql {name} …, to correct the rows, then headwater correct run {name}"
    dry = ask(capsys, "run", name, "--dry-run")
    assert [(each["jobs"], each["would_run"]) for each in dry["jobs"]] == [
        *(("details", True), ("revenue", True), ("top10", True)),
    ]
    ran = ask(capsys, "run", name)
    assert ([each["jobs"] for each in ran["ran"]][:3], ran["commits"]) == (["details", "revenue", "top10"], 1)
    shown = ask(capsys, "show", name)
    assert [step["kind"] for step in shown["steps"]][:6] == [*["MIRROR"] * 4, "TAKE_OVER", "RERUN"]
    assert {step["state"] for step in shown["steps"]} == {"DONE"}
    assert [(each["table"], each["commits_behind"]) for each in shown["lags"]] == [
        *((ORDERS, 0), (DETAILS, 0), (REVENUE, 0), (TOP10, 0)),
    ]
    assert shown["correction"]["next"] == f"headwater correct diff {name}, then headwater correct switch {name}"
    [listed] = ask(capsys, "list")["corrections"]
    assert (listed["commits_behind"], listed["behind"]) == (0, None)
    ask(capsys, "abort", name, "--dry-run")
    assert len(tables.mirrors) == 4
    ask(capsys, "abort", name, "--yes")
    assert (tables.mirrors, ask(capsys, "show", name)["correction"]["state"]) == ({}, "ABORTED")
    ask(capsys, "abort", name, "--yes")


def test_long_commands_say_how_far_they_are_but_not_in_json(
    tmp_path: Path, tables: MemoryTables, capsys: pytest.CaptureFixture[str]
) -> None:
    """The plan counts 1 and 2 commits that the jobs make again, since nobody reported rows."""
    (tmp_path / "correction.toml").write_text(COMMANDS)
    assert main(["correct", "begin", "orders@4"]) == Exit.DONE
    said = capsys.readouterr()
    assert "mirrors: 4 of 4 mirrors, " in said.err
    assert "mirrors: 4" not in said.out
    name = said.out.partition(" is open")[0].rpartition("\n")[2]
    assert main(["correct", "run", name]) == Exit.DONE
    lines = capsys.readouterr().err.splitlines()
    jobs = [line for line in lines if line.startswith("jobs: ")]
    assert jobs[0].startswith("jobs: 0 of 4 commits, 0 a second")
    assert any(line.startswith("jobs: 4 of 4 commits, ") for line in jobs), lines
    assert main(["correct", "run", name, "-o", "json"]) == Exit.DONE
    assert "jobs: " not in capsys.readouterr().err


def test_a_begin_without_commands_makes_nothing(tables: MemoryTables, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["correct", "begin", "orders@4"]) == Exit.CONFIGURATION
    said = capsys.readouterr().err
    assert 'details has no command: add [jobs."details"] run = "SCRIPT" to correction.toml' in said
    dry = ask(capsys, "begin", "orders@4", "--dry-run", code=Exit.FAILED)
    assert len(dry["obstacles"]) == 3
    assert tables.mirrors == {}


def test_a_correction_can_be_incremental(
    tmp_path: Path, tables: MemoryTables, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "correction.toml").write_text(COMMANDS)
    name = ask(capsys, "begin", "orders@4", "--mode", "incremental")["correction"]
    assert ask(capsys, "show", name)["correction"]["mode"] == "incremental"


def test_what_has_no_mirrors_is_told_apart(
    tmp_path: Path, tables: MemoryTables, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "correction.toml").write_text(COMMANDS)
    name = ask(capsys, "begin", "orders@4")["correction"]
    assert main(["correct", "diff", name, "lake.db.products"]) == Exit.CONFIGURATION
    assert f"{name} has no mirror of lake.db.products: it has those of {ORDERS}" in capsys.readouterr().err
    assert main(["correct", "diff", name, "--key", "id"]) == Exit.CONFIGURATION
    assert "of which table are these columns?" in capsys.readouterr().err
    ask(capsys, "abort", name, "--yes")
    for words in (["run", name], ["sql", name, "SELECT 1"], ["diff", name]):
        assert main(["correct", *words]) == Exit.CONFIGURATION
        assert "is ABORTED: its mirrors were removed" in capsys.readouterr().err
    assert tables.mirrors == {}
