"""`headwater lineage` finds what is typed, and says what it doesn't find."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from headwater.cli.app import main
from headwater.cli.exits import Exit
from tests.kit.lineage.all_stories import columns
from tests.kit.lineage.scripted_producer import store
from tests.kit.lineage.stories import StoryProducer
from tests.kit.stores import open_new_store


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    url = f"sqlite:///{tmp_path / 'lineage.db'}"
    producer = StoryProducer()
    columns(producer)
    with open_new_store(url) as opened, opened.engine.begin() as connection:
        store(connection, producer)
    monkeypatch.setenv("HEADWATER_STORE", url)
    return url


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("upstream db.c", "└─ lake.db.b  by etl"),
        ("upstream c@1", "lake.db.c@1: upstream, what its commit read (commit)"),
        ("upstream c@1 --direct", "└─ lake.db.b@1"),
        ("upstream c --state", "all commits since the last full overwrite (state)"),
        ("upstream c@1.total", "lake.db.b@1.y (aggregation)"),
        ("upstream c --column total --direct", "lake.db.b.y (aggregation)"),
        ("downstream a", "└─ lake.db.b  by etl"),
        ("downstream a.x", "lake.db.c.total (aggregation)"),
        ("downstream a@1", "by who read it itself (commit)"),
        ("path a c", "   └─> lake.db.c  by etl"),
        ("path a c@1", "└─> lake.db.b@1"),
        ("upstream c -o dot", "digraph lineage {"),
        ("upstream c -o mermaid", "flowchart LR"),
        ("upstream c -o html", "<!doctype html>"),
        ("upstream c --as-of 2026-03-01T12:00:30", "nothing is known"),
    ],
)
@pytest.mark.slow
def test_what_is_answered(url: str, capsys: pytest.CaptureFixture[str], words: str, expected: str) -> None:
    assert main(["lineage", *words.split()]) == Exit.DONE
    assert expected in capsys.readouterr().out


def test_output_json_holds_for_lineage_too(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--output", "json", "lineage", "upstream", "--store", url, "c"]) == Exit.DONE
    assert json.loads(capsys.readouterr().out)["of"] == "lake.db.c"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("upstream lake.db.cc", "did you mean lake.db.c"),
        ("upstream c@1 --job etl", "--job is for questions about tables"),
        ("downstream c@1.total", "leave the snapshot out"),
    ],
)
def test_what_is_wrong_is_reported(url: str, capsys: pytest.CaptureFixture[str], words: str, expected: str) -> None:
    assert main(["lineage", *words.split()]) in {Exit.FAILED, Exit.CONFIGURATION}
    assert expected in capsys.readouterr().err


def test_without_a_store(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HEADWATER_STORE", raising=False)
    assert main(["lineage", "upstream", "c"]) == Exit.CONFIGURATION
    assert "HEADWATER_STORE" in capsys.readouterr().err
