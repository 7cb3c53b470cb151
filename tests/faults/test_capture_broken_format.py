"""A table format of another version than headwater was made for: its part can't be compiled, all else is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from headwater.events import Committed, Gap
from headwater.listeners.capture import driver_listener, jvm
from headwater.listeners.capture.jvm import JavaError
from headwater.listeners.capture.records import VERSION
from tests.faults.capture_kit import ScriptedTap, driver
from tests.matrix.harness import attached, of

pytestmark = [pytest.mark.slow, pytest.mark.spark, pytest.mark.sample(1)]
BROKEN = b"package headwater.capture; public final class %s { static int version() { return Nowhere.VERSION; } }"


def test_what_cannot_be_compiled_is_left_out(java_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("StrangeExtractor", "StrangeHook")
    strange = {f"{name}.java": BROKEN % name.encode() for name in names}
    real = jvm.read_sources()
    monkeypatch.setattr(jvm, "read_sources", lambda: real | strange)
    monkeypatch.setattr(jvm, "PROBES", {"Strange": jvm.PROBES["Session"], **jvm.PROBES})
    with driver(java_home, tmp_path) as spark:
        for _ in range(2):  # the second time in the JVM that is known
            with attached(spark) as (capture, bus):
                spark.sql("INSERT OVERWRITE b SELECT * FROM a")
                assert capture.drain(60)
            assert len(of(Committed, bus.events)) == 1
            assert all(any(name in each.detail for each in of(Gap, bus.events)) for name in names)


def test_classes_of_another_version_are_refused(
    java_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A JVM keeps the classes that it has, whichever headwater comes later."""
    with driver(java_home, tmp_path) as spark:
        with attached(spark):
            pass
        monkeypatch.setattr(driver_listener, "VERSION", VERSION + 1)
        with pytest.raises(JavaError, match=f"records of version {VERSION}, not {VERSION + 1}: start the driver anew"):
            ScriptedTap(spark.sparkContext, {})
