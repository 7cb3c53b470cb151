"""One namespace package in four source roots: the traps of that layout."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest
from mypy.main import process_options

from tests.kit.checkout import MODULES, ROOT, SCRIPTS, SOURCE_ROOTS


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
