"""A second driver loads the class files that the first one compiled, and compiles nothing. Each has its own JVM."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from headwater.listeners.capture.jvm import JavaClasses
from tests.kit.spark.jvm import spark_classes

pytestmark = pytest.mark.spark
NAME = "SqlExecutionListener"


def start(java_home: Path) -> tuple[set[str], int]:
    """What a driver compiled of a class and of all that it needs, and what the class answers."""
    with spark_classes(java_home) as gateway:
        context: Any = SimpleNamespace(_gateway=gateway, _jvm=gateway.jvm)
        java = JavaClasses(context)
        version = java.call(NAME, "recordVersion")
        java.load("AnalysisFailure")
        compiled = set(java.compiled())
        java.keep_compiled()
        return compiled, version


def test_class_files_are_used_and_damaged_ones_are_not(
    java_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADWATER_CACHE", str(tmp_path))
    first, version = start(java_home)
    assert f"headwater/capture/{NAME}.class" in first

    assert start(java_home) == (set(), version)

    (kept,) = (tmp_path / "class-files").iterdir()
    (kept / "headwater/capture/Json.class").write_bytes(b"")
    assert start(java_home) == (first, version)
    assert start(java_home) == (set(), version)
