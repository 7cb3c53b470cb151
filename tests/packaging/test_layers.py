"""The layers hold, the tool that checks them sees every module, and each contract breaks when it should."""

from __future__ import annotations

import importlib
import os
import re
import shutil
import subprocess
import sys
from importlib.metadata import distribution, packages_distributions
from pathlib import Path

import grimp
import pytest
from mypy.main import process_options
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.kit.checkout import MODULES, ROOT, SCRIPTS, SOURCE_ROOTS

# Where an import is planted, what it is, and the contract that must break.
FORBIDDEN = [
    ("events/headwater/events", "headwater.lineage", "what is under events/ knows nothing else of ours"),
    ("events/headwater/journal", "headwater.publishers", "what is under events/ knows nothing else of ours"),
    ("events/headwater/events", "pyspark.sql", "only listeners and consumers.spark import pyspark"),
    ("events/headwater/journal", "sqlalchemy", "a driver that only makes events needs no database"),
    (
        "listeners/headwater/listeners",
        "headwater.cli",
        "listeners, publishers and lineage know only what is under events/",
    ),
    ("listeners/headwater/lens", "headwater.lineage", "the lens knows only what is under events/"),
    (
        "publishers/headwater/publishers",
        "headwater.testing",
        "listeners, publishers and lineage know only what is under events/",
    ),
    (
        "publishers/headwater/publishers",
        "headwater.lineage",
        "listeners, publishers and lineage don't know each other",
    ),
    (
        "consumers/headwater/consumers",
        "headwater.publishers",
        "consumers and forwarders know only lineage and what is under events/",
    ),
    (
        "consumers/headwater/consumers",
        "headwater.forwarders",
        "forwarders read by the sources of consumers, and consumers don't know forwarders",
    ),
    ("consumers/headwater/forwarders", "headwater.consumers.writer", "forwarders know nothing of the writer"),
    ("consumers/headwater/consumers", "pyspark", "only listeners and consumers.spark import pyspark"),
    ("consumers/headwater/lineage", "pyspark", "only listeners and consumers.spark import pyspark"),
    ("consumers/headwater/local", "headwater.events", "local servers know nothing of events"),
    (
        "consumers/headwater/conformance",
        "headwater.forwarders",
        "the conformance suite judges any producer, and knows nothing of ours",
    ),
    ("consumers/headwater/cli", "headwater.testing", "the command line doesn't need the testing kit"),
    ("listeners/headwater/listeners/capture/plan", "headwater.listeners.capture.records", "layers within capture"),
    ("listeners/headwater/listeners/capture/plan", "headwater.listeners.capture.pipeline", "layers within capture"),
    (
        "listeners/headwater/listeners/capture/formats/delta",
        "headwater.listeners.capture.formats",
        "a format is given what it asks of others: it doesn't look them up",
    ),
]
ALLOWED = [
    ("listeners/headwater/lens", "pyspark.sql"),
    ("consumers/headwater/versions", "headwater.lens"),
    ("listeners/headwater/listeners", "pyspark"),
    ("consumers/headwater/consumers/spark", "pyspark.sql"),
    ("consumers/headwater/consumers", "headwater.lineage"),
    ("consumers/headwater/forwarders", "headwater.events"),
    ("consumers/headwater/cli", "headwater.forwarders"),
    ("consumers/headwater/testing", "headwater.consumers"),
]


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the code and its configuration to plant imports into."""
    for root in SOURCE_ROOTS:
        shutil.copytree(ROOT / root, tmp_path / root, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def lint(tree: Path) -> str:
    """What import-linter says of a tree, its own copy of the code first on the path."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(str(tree / root) for root in SOURCE_ROOTS), "COLUMNS": "200"}
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache", "--no-logo"]
    return subprocess.run(command, cwd=tree, env=env, capture_output=True, text=True, check=False).stdout


def plant(tree: Path, folder: str, imported: str) -> None:
    """Add a module with one import, in a function: a lazy import is an import."""
    (tree / folder).mkdir(exist_ok=True)
    (tree / folder / "planted.py").write_text(f"def f() -> None:\n    import {imported}\n", encoding="utf-8")


def broken(report: str) -> set[str]:
    """The names of the contracts that don't hold."""
    return set(re.findall(r"^(.*) BROKEN\b", report, re.MULTILINE))


@pytest.mark.parametrize(("folder", "imported", "contract"), FORBIDDEN)
@pytest.mark.slow
def test_a_forbidden_import_breaks_its_contract(copy: Path, folder: str, imported: str, contract: str) -> None:
    plant(copy, folder, imported)
    assert broken(lint(copy)) == {contract}


@pytest.mark.slow
def test_what_is_allowed_breaks_nothing(copy: Path) -> None:
    for folder, imported in ALLOWED:
        plant(copy, folder, imported)
    report = lint(copy)
    assert broken(report) == set()
    assert ", 0 broken." in report


def test_the_layers_are_checked_over_every_module() -> None:
    graph = grimp.build_graph("headwater", cache_dir=None)
    assert set(MODULES) | {"headwater"} == graph.modules


@pytest.mark.slow
def test_whatever_is_imported_is_declared() -> None:
    """A module that only a development tool happens to bring would be missing where a user installs headwater."""
    requirements = [Requirement(text) for text in distribution("headwater").requires or []]
    declared = {canonicalize_name(each.name) for each in requirements if 'extra == "dev"' not in str(each.marker)}
    brought_by_pydantic = {"pydantic-core", "typing-extensions", "annotated-types"}
    imported = grimp.build_graph("headwater", include_external_packages=True, cache_dir=None).modules - set(MODULES)
    foreign = {name for name in imported if name != "headwater"} - sys.stdlib_module_names
    of = packages_distributions()
    known = declared | brought_by_pydantic
    undeclared = {name for name in foreign if not {*map(canonicalize_name, of.get(name, [name]))} & known}
    assert {"pydantic", "fastavro"} <= foreign
    assert undeclared == set()


# One namespace package in four source roots: the traps of that layout.


@pytest.mark.parametrize("root", SOURCE_ROOTS)
def test_no_root_closes_the_namespace(root: str) -> None:
    """An __init__.py directly in one headwater/ would hide the headwater/ of the other roots."""
    assert [path.name for path in (ROOT / root).iterdir() if path.name != "__pycache__"] == ["headwater"]
    assert not (ROOT / root / "headwater" / "__init__.py").exists()


def test_every_folder_with_modules_is_a_package() -> None:
    """A folder without __init__.py would be a namespace of its own, unseen by the layers and open to strangers."""
    folders = {path.parent for path in MODULES.values()} - {ROOT / root / "headwater" for root in SOURCE_ROOTS}
    assert folders
    assert {folder for folder in folders if not (folder / "__init__.py").exists()} == set()


def test_no_module_is_in_two_roots() -> None:
    files = [path for root in SOURCE_ROOTS for path in (ROOT / root).rglob("*.py") if path.parent not in SCRIPTS]
    assert len(MODULES) == len(files)


@pytest.mark.parametrize("name", ["events", "listeners", "publishers", "consumers", "lineage", "forwarders", "cli"])
def test_the_editable_installation_finds_every_root(name: str) -> None:
    room = importlib.import_module(f"headwater.{name}")
    assert Path(str(room.__file__)) == MODULES[f"headwater.{name}"]


def test_mypy_checks_every_module_under_its_own_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """`mypy -p headwater` sees the first root only and reports success; our configuration names the roots."""
    monkeypatch.chdir(ROOT)
    sources, _ = process_options([])
    assert set(MODULES) <= {source.module for source in sources}
