"""A second driver has the archives that the first one compiled, and compiles nothing. Each has its own JVM."""

from __future__ import annotations

import json
import zipfile
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

from headwater.jvm import bundled, loader
from headwater.jvm.bundled import FACTS
from headwater.jvm.cache import ArchiveCache
from headwater.jvm.loader import ClassOrigin, JavaError
from headwater.lens.java_classes import make_loader
from headwater.listeners.capture import jvm
from headwater.listeners.capture.jvm import JavaClasses
from headwater.listeners.capture.records import VERSION
from headwater.listeners.capture.self_test import SelfTest
from tests.kit.spark.jvm import spark_classes
from tools import class_archives

pytestmark = pytest.mark.spark
NAME = "SqlExecutionListener"
BROKEN = "Broken"
FORMATS = ("Iceberg", "Delta", "Paimon", "Hudi", "Kafka")


class EndOfJobError(Exception):
    pass


class Start(NamedTuple):
    """What a driver's classes come from, what one of them answers, and what the self-test says of them."""

    origin: ClassOrigin
    version: int
    degraded: tuple[str, ...]


def start(java_home: Path) -> Start:
    with spark_classes(java_home) as gateway:
        context: Any = SimpleNamespace(_gateway=gateway, _jvm=gateway.jvm)
        java = JavaClasses(context)
        version = java.call(NAME, "recordVersion")
        if java.state.origin is ClassOrigin.COMPILER:
            with pytest.raises(JavaError, match=BROKEN):
                java.load(BROKEN)
            java.leave_out(BROKEN, "it is broken")
        assert java.state.facts.left_out == {BROKEN: "it is broken"}
        assert not java.has_source(BROKEN)
        test = SelfTest(java, FORMATS)
        degraded = test.finish("3.5.7")
        assert test.missing is not None
        java.keep(test.missing)
        return Start(java.state.origin, version, tuple(map(str, degraded)))


def test_archives_are_used_and_damaged_ones_are_not(
    java_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With what was found out about them: which class can't be compiled, and what the self-test missed."""
    monkeypatch.setenv("HEADWATER_CACHE", str(tmp_path))
    sources = jvm.read_sources()
    sources[f"{BROKEN}.java"] = b"package headwater.capture; public final class Broken extends Nowhere { }"
    monkeypatch.setattr(jvm, "read_sources", lambda: sources)
    first = start(java_home)
    assert first.origin is ClassOrigin.COMPILER
    second = first._replace(origin=ClassOrigin.CACHE)
    assert start(java_home) == second

    kept = sorted((tmp_path / "class-files").iterdir())
    assert len(kept) == 2  # of all formats, and of JDBC
    archive = max(kept, key=lambda each: each.stat().st_size)
    with zipfile.ZipFile(archive) as opened:
        assert json.loads(opened.read(FACTS))["left_out"] == {BROKEN: "it is broken"}
        assert f"headwater/capture/{NAME}.class" in opened.namelist()
    content = bytearray(archive.read_bytes())
    content[len(content) // 2] ^= 1
    archive.write_bytes(content)
    assert start(java_home) == first
    assert start(java_home) == second


def test_a_driver_that_ends_before_all_is_compiled_spares_the_next_one_what_is(
    java_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job of seconds ends before the classes are compiled that no start needs: each would compile, for ever."""
    monkeypatch.setenv("HEADWATER_CACHE", str(tmp_path))
    compiled: list[frozenset[str]] = []
    for _ in range(2):
        with spark_classes(java_home) as gateway:
            java = JavaClasses(SimpleNamespace(_gateway=gateway, _jvm=gateway.jvm))
            compiled.append(java.compiled)
            assert java.call(NAME, "recordVersion") == VERSION
            compiled.append(java.compiled)
            java.keep_begun()
            assert len(list((tmp_path / "class-files").iterdir())) == 1
            assert not java.is_archived
            if len(compiled) == 4:
                java.keep()
    before, first, second, after = compiled
    assert before == frozenset()
    assert f"headwater/capture/{NAME}.class" in first
    assert (second, after) == (first, first), "nothing was compiled"
    kept = sorted(each.name for each in (tmp_path / "class-files").iterdir())
    assert len(kept) == 2, "what was begun is no more needed"
    assert not [name for name in kept if name.startswith("begun")]


def test_what_is_compiled_behind_a_start_is_kept_as_it_goes(
    java_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes seconds. If it were kept at the end alone, jobs that end before would compile the same for ever."""
    monkeypatch.setenv("HEADWATER_CACHE", str(tmp_path))
    monkeypatch.setattr(loader, "_KEEP_SECONDS", 0.0)
    counts: list[int] = []

    def add(self: ArchiveCache, key: str, content: bytes) -> None:
        if key.startswith("begun-"):
            counts.append(len(zipfile.ZipFile(BytesIO(content)).namelist()))
        if len(counts) == 3:
            raise EndOfJobError
        real(self, key, content)

    real = ArchiveCache.add
    monkeypatch.setattr(ArchiveCache, "add", add)
    with spark_classes(java_home) as gateway:
        java = JavaClasses(SimpleNamespace(_gateway=gateway, _jvm=gateway.jvm))
        with pytest.raises(EndOfJobError):
            java.keep()
    assert counts == sorted(set(counts)), "each has more classes than the one before"
    assert [each.name.partition("-")[0] for each in (tmp_path / "class-files").iterdir()] == ["begun"]


# What a wheel brings along is what Janino gives, and a driver that has the very jars takes it from there.


ABSENT = ("Iceberg", "Delta", "Paimon", "Hudi", "Kafka")


@pytest.mark.slow
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
