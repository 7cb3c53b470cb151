"""What is in the wheel is what is in the tree, under one name, with its types and its licence."""

from __future__ import annotations

import email.message
import tarfile
import zipfile
from email.parser import HeaderParser
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from tests.kit.checkout import ROOT, SOURCE_ROOTS, only

pytestmark = [pytest.mark.slow, pytest.mark.long, pytest.mark.xdist_group("packaging")]
HOOK_SOURCE, HOOK_LINE = "headwater/listeners/hook.pth", "headwater.pth"  # see test_hook_line.py
EXTRAS = {
    *(
        "spark",
        "registry",
        "postgres",
        "mysql",
        "store",
        "datahub",
        "atlas",
        "openlineage",
        "archive",
        "lake",
        "reconcile",
        "reconcile-iceberg",
        "webhook",
        "alerts",
        "web",
        "graph",
        "metrics",
        "local",
        "demo",
        "testing",
    ),
    "dev",
}


def tree_files() -> set[str]:
    """Every file of the four source roots, by its path in the wheel."""
    paths = [(path, path.relative_to(ROOT / root)) for root in SOURCE_ROOTS for path in (ROOT / root).rglob("*")]
    return {str(inner) for path, inner in paths if path.is_file() and "__pycache__" not in inner.parts}


@pytest.fixture(scope="module")
def names(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


@pytest.fixture(scope="module")
def metadata(wheel: Path) -> email.message.Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return HeaderParser().parsestr(archive.read(name).decode())


def test_the_wheel_has_every_file_of_the_tree_and_no_other(names: set[str]) -> None:
    built = {name for name in names if ".dist-info/" not in name and not name.startswith("headwater/jvm/class-files/")}
    assert built == tree_files() - {HOOK_SOURCE} | {HOOK_LINE}


def test_the_only_top_level_name_is_headwater(names: set[str]) -> None:
    tops = {name.split("/")[0] for name in names} - {HOOK_LINE}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"headwater"}
    assert len(tops) == 2


def test_every_room_and_the_namespace_tell_that_they_are_typed(names: set[str]) -> None:
    rooms = {"/".join(name.split("/")[:2]) for name in names if name.startswith("headwater/") and name.count("/") > 1}
    assert rooms >= {"headwater/events", "headwater/listeners", "headwater/publishers", "headwater/consumers"}
    assert {f"{room}/py.typed" for room in rooms} | {"headwater/py.typed"} <= names


def test_metadata(metadata: email.message.Message) -> None:
    assert metadata["Name"] == "headwater"
    assert metadata["License-Expression"] == "Apache-2.0"
    assert SpecifierSet(metadata["Requires-Python"]) == SpecifierSet(">=3.10")
    assert set(metadata.get_all("Provides-Extra", [])) == EXTRAS


def test_the_base_stays_light(metadata: email.message.Message) -> None:
    requirements = [Requirement(text) for text in metadata.get_all("Requires-Dist", [])]
    base = {each.name for each in requirements if each.marker is None or "extra" not in str(each.marker)}
    assert base == {"pydantic", "fastavro", "confluent-kafka", "sqlalchemy"}
    assert all(each.specifier or each.name in {"headwater", "setuptools"} for each in requirements)


def test_the_command_and_the_licence_come_along(wheel: Path, names: set[str]) -> None:
    (scripts,) = (name for name in names if name.endswith(".dist-info/entry_points.txt"))
    with zipfile.ZipFile(wheel) as archive:
        assert "headwater = headwater.cli:main" in archive.read(scripts).decode()
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names)


def test_the_sdist_can_be_built_and_tested_from(distributions: Path) -> None:
    with tarfile.open(only(distributions, "*.tar.gz")) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    wanted = {"pyproject.toml", "LICENSE", "README.md", "CHANGELOG.md", "Makefile", "tools/environment.py"}
    assert wanted | {"requirements/dev.lock", "tests/conftest.py"} <= names
    assert {
        f"{root}/{name}" for root in SOURCE_ROOTS for name in tree_files() if (ROOT / root / name).exists()
    } <= names
