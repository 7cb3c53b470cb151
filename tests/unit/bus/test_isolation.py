"""Where a listener works, and how long the shipper outlives a driver."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from headwater.listeners.bus.listener_creation import Isolation, configured_isolation
from headwater.listeners.bus.shipper import start
from headwater.listeners.bus.shipper.start import DEFAULT_SECONDS, linger_seconds


@pytest.mark.parametrize(
    ("item", "word", "isolation"),
    [
        ("kafka", None, Isolation.PROCESS),
        ("other=kafka", None, Isolation.PROCESS),
        ("jdbc", None, Isolation.PROCESS),
        ("log", None, Isolation.THREAD),
        ("audit=mycompany.audit:AuditFactory", None, Isolation.THREAD),
        ("audit=mycompany.audit:AuditFactory", "process", Isolation.PROCESS),
        ("kafka", " Thread ", Isolation.THREAD),
    ],
)
def test_where_a_listener_works(item: str, word: str | None, isolation: Isolation) -> None:
    name = item.partition("=")[0]
    conf = {} if word is None else {f"spark.headwater.{name}.isolation": word}
    assert configured_isolation(item, conf) is isolation


@pytest.mark.parametrize(
    ("parents", "marker", "seconds"),
    [
        ({}, None, DEFAULT_SECONDS),
        ({7: 1}, None, DEFAULT_SECONDS),
        ({1: 0}, ".dockerenv", 0.0),
        ({7: 5, 5: 1}, "run/.containerenv", 0.0),
        ({7: 6, 6: 5, 5: 4, 4: 1}, ".dockerenv", DEFAULT_SECONDS),
    ],
    ids=["bare", "an init's child", "the first process", "the first one's grandchild", "a notebook's server is first"],
)
def test_how_long_it_outlives_a_driver(
    tmp_path: Path, parents: dict[int, int], marker: str | None, seconds: float
) -> None:
    if marker:
        (tmp_path / marker).parent.mkdir(exist_ok=True)
        (tmp_path / marker).touch()
    for pid, parent in parents.items():
        (tmp_path / "proc" / str(pid)).mkdir(parents=True)
        (tmp_path / "proc" / str(pid) / "status").write_text(f"Name:\tpython\nPPid:\t{parent}\n")
    assert linger_seconds(None, tmp_path, {}, max(parents, default=7)) == seconds
    assert linger_seconds(5, tmp_path, {}, max(parents, default=7)) == 5


def test_a_shipper_finds_headwater_where_the_driver_found_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Relative places are those of the driver, and an importer of its own may have found headwater elsewhere."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", ["", "jobs.zip", "/opt/jobs"])
    path = start._import_path()
    assert path[:3] == [str(tmp_path), str(tmp_path / "jobs.zip"), "/opt/jobs"]
    assert {str(Path(each).parent) for each in sys.modules["headwater"].__path__} <= {*path[3:]}


@pytest.mark.parametrize(
    ("log", "is_import"),
    [
        ("Traceback:\nModuleNotFoundError: No module named 'headwater'\n", True),
        ("Traceback:\nzipimport.ZipImportError: bad local file header: '/a.zip'\n", True),
        ("Traceback:\nheadwater.errors.TransientError: the spool can't be read now\n", False),
        ("ImportError: early\nKeyError: 'late'\n", False),
        ("", False),
    ],
)
def test_what_a_process_says_that_cannot_import(log: str, is_import: bool) -> None:
    assert (start.describe_import_failure(log) is not None) == is_import
