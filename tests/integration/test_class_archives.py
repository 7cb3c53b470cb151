"""What a wheel brings along is what Janino gives, and a driver that has the very jars takes it from there.

Nothing else compiles as the build of a wheel does: its archives would else fit no driver, in silence.
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from headwater.jvm import bundled, loader
from headwater.jvm.loader import ClassOrigin
from headwater.lens.java_classes import make_loader
from headwater.listeners.capture.jvm import JavaClasses
from headwater.listeners.capture.self_test import SelfTest
from tests.kit.spark.jvm import spark_classes
from tools import class_archives

pytestmark = [pytest.mark.spark, pytest.mark.slow]
ABSENT = ("Iceberg", "Delta", "Paimon", "Hudi", "Kafka")


def test_a_driver_takes_what_the_wheel_brings(java_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADWATER_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(bundled, "DIRECTORY", tmp_path / "class-files")
    monkeypatch.setattr(loader, "_KEEP_SECONDS", 0.0)  # a wheel that is built keeps nothing in its user's cache
    (tmp_path / "class-files").mkdir()
    (spark,) = class_archives.find_sparks()
    found = class_archives.compile_for(spark, [], tmp_path / "class-files")
    assert len(found) == 3  # of all formats, of JDBC, of the lens
    bundled.write_index(found, tmp_path / "class-files")

    with spark_classes(java_home) as gateway:
        context: Any = SimpleNamespace(_gateway=gateway, _jvm=gateway.jvm)
        java = JavaClasses(context)
        lens = make_loader(gateway)
        assert (java.state.origin, lens.state.origin) == (ClassOrigin.WHEEL, ClassOrigin.WHEEL)
        for each in (java, lens):
            for name in each.sources:
                assert each.load(name.removesuffix(".java")) is not None
        test = SelfTest(java, ABSENT)
        assert test.finish("3.5.7") == []
        assert (test.missing, test.absent) == ((), java.state.facts.absent)
        assert any("org.apache.spark.connect" in each for each in test.absent)
        java.keep()
    assert not (tmp_path / "cache" / "class-files").exists()
