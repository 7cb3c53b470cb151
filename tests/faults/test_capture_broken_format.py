"""A table format of another version than headwater was made for: its part can't be compiled, all else is reported."""

from __future__ import annotations

from pathlib import Path

import pytest

from headwater.events import Committed, Gap
from headwater.listeners.capture import driver_listener, jvm
from headwater.listeners.capture.formats import CORE
from headwater.listeners.capture.jvm import JavaClasses, JavaError
from headwater.listeners.capture.records import VERSION
from tests.kit.faults.capture import ScriptedTap, driver
from tests.kit.formats.plugins import on_path, page_code, write_acme
from tests.kit.spark.driver import attached, of

pytestmark = [pytest.mark.slow, pytest.mark.spark, pytest.mark.sample(1)]
BROKEN = b"package headwater.capture; public final class %s { static int version() { return Nowhere.VERSION; } }"


def test_what_cannot_be_compiled_is_left_out(java_home: Path, tmp_path: Path) -> None:
    """Of a distribution of its own: beside what fails, what the page for authors of formats shows is compiled."""
    names = ("StrangeExtractor", "StrangeHook")
    python = page_code("python").replace("com.acme.spark.AcmeRelation", CORE[0].probe)
    python = python.replace('"AcmeExtractor"', f'"{names[0]}", hooks=("{names[1]}",)')
    strange = {f"{name}.java": (BROKEN % name.encode()).decode() for name in names}
    write_acme(tmp_path / "acme", python, {**strange, "AcmeExtractor.java": page_code("java")})
    with on_path(tmp_path / "acme"), driver(java_home, tmp_path) as spark:
        for _ in range(2):  # the second time in the JVM that is known
            with attached(spark) as (capture, bus):
                spark.sql("INSERT OVERWRITE b SELECT * FROM a")
                assert capture.drain(60)
            assert len(of(Committed, bus.events)) == 1
            assert all(any(name in each.detail for each in of(Gap, bus.events)) for name in names)
        assert JavaClasses(spark.sparkContext).new("AcmeExtractor").format() == "acme"


THROWS = {
    "CatalogHook": (
        "boolean within = CommitRecorder.execution() != null;",
        "NoSuchMethodError(\"'void strange.Library.moved(int)'\")",
    ),
    "SessionExtractor": (
        "ended(Statement statement, Json json) throws Exception {",
        "IllegalStateException(\"no 'secret'\")",
    ),
}
"""By class the line that throws from now on, and what."""


def test_what_is_caught_is_reported_of_its_statement_with_its_line(
    java_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The statement runs, and nothing of what the message quotes is reported or logged."""
    sources, lines = jvm.read_sources(), {}
    for name, (before, thrown) in THROWS.items():
        source = sources[f"{name}.java"].decode()
        assert source.count(before) == 1
        lines[name] = f"{name}.java:{source[: source.index(before)].count(chr(10)) + 1}"
        sources[f"{name}.java"] = source.replace(before, f"{before} if (true) throw new {thrown};").encode()
    monkeypatch.setattr(jvm, "read_sources", lambda: sources)
    with driver(java_home, tmp_path) as spark, attached(spark) as (capture, bus):
        for _ in range(2):
            spark.sql("CREATE TABLE c USING parquet AS SELECT * FROM a")
            spark.sql("DROP TABLE c")
        assert spark.sql("SHOW TABLES LIKE 'c'").count() == 0
        assert capture.drain(60)
    of_hook = f"{lines['CatalogHook']}: java.lang.NoSuchMethodError: `void strange.Library.moved(int)`"
    of_extractor = f"{lines['SessionExtractor']}: java.lang.IllegalStateException: no '?'"
    written = {each.statement for each in of(Committed, bus.events)}
    assert len(written) == 2
    for cause in (of_hook, of_extractor):
        assert written <= {gap.statement for gap in of(Gap, bus.events) if cause in gap.detail}
    for name, cause in (("CatalogHook.note", of_hook), ("StatementWriter.facts", of_extractor)):
        (message,) = [each.getMessage() for each in caplog.records if each.getMessage().startswith(f"{name} caught")]
        assert cause in message
        assert f"\n    at headwater.capture.{lines[cause.partition('.')[0]].partition('.')[0]}." in message
    assert "secret" not in caplog.text + repr(bus.events)


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
