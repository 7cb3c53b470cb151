"""`headwater store`: a store is made, looked at and measured."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from headwater.cli import main
from headwater.cli.exits import Exit
from headwater.lineage.bulk import merge_rows
from headwater.lineage.mapping import map_event
from headwater.lineage.store import open_store
from headwater.testing.examples import EXAMPLES


def run(*arguments: object) -> int:
    return main(["--output", "json", "store", *map(str, arguments)])


def answer_of(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HEADWATER_STORE", str(tmp_path / "store.db"))
    return tmp_path / "store.db"


@pytest.mark.slow
def test_from_nothing_to_a_store(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.touch()
    assert run("status") == Exit.FAILED
    before = answer_of(capsys)["store"]
    assert (before["where"], before["tables"]) == (str(file), "EMPTY")
    assert f"headwater store init --store {file}" in before["to_do"]
    assert run("migrate") == Exit.FAILED
    assert run("init") == Exit.DONE
    capsys.readouterr()
    assert run("status", "--store", file) == Exit.DONE
    after = answer_of(capsys)["store"]
    assert (after["version"], after["to_do"]) == ("0001", None)
    assert after["views"] == "in paimon"
    assert run("migrate") == run("maintain") == Exit.DONE


@pytest.mark.slow
def test_how_large_it_is(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [row for event in EXAMPLES for row in map_event(event)]
    with open_store(str(file)) as store, store.engine.begin() as connection:
        merge_rows(connection, rows)
    assert run("size") == Exit.DONE
    found = answer_of(capsys)
    tables, total = found["tables"], found["total"]
    by_name = {each["table"]: each for each in tables}
    commits = {row.id for row in rows if row.kind.name == "commits"}
    assert by_name["commits"]["rows"] == len(commits)
    assert by_name["tombstones"]["rows"] == len({row.id for row in rows if row.kind.name == "tombstones"})
    assert total["rows"] == sum(each["rows"] for each in tables)
    first = min(row.times.first for row in rows if row.kind.name == "commits")
    assert datetime.fromisoformat(by_name["commits"]["oldest"].replace("Z", "+00:00")).timestamp() == pytest.approx(
        first / 1e6
    )
    assert int(total["size"]) >= file.stat().st_size
    assert total["oldest"] <= total["newest"]


def test_what_is_wrong_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HEADWATER_STORE", raising=False)
    assert run("status") == Exit.CONFIGURATION
    assert run("size", "--store", tmp_path / "none.db") == Exit.FAILED
    assert run("init", "--store", "jdbc:oracle:thin:@h") == Exit.CONFIGURATION
    monkeypatch.setenv("HEADWATER_STORE_JDBC_PASWORD", "5ecret")
    assert run("init", "--store", tmp_path / "a.db") == Exit.CONFIGURATION
    words = capsys.readouterr().err
    assert "which store? Name it by --store" in words
    assert "did you mean HEADWATER_STORE_JDBC_PASSWORD" in words
    assert "5ecret" not in words
