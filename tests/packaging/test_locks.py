"""The lock files: exact, hashed, the same everywhere, bound to nobody's index, and within the ranges we promise."""

from __future__ import annotations

import re
from importlib.metadata import distribution, version
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.kit.checkout import ROOT
from tools.environment import SPARKS, locked

FILES = sorted((ROOT / "requirements").glob("*.lock"))
PIN = re.compile(r"^(?P<pin>[\w.-]+==[^ \\]+)(?: ; (?P<marker>[^\\]+?))? \\$")


def pins(line: str) -> dict[str, set[str]]:
    """The exact requirements of a line, per package: more than one where they differ by Python."""
    found: dict[str, set[str]] = {}
    for match in map(PIN.match, locked(line).splitlines()):
        if match:
            requirement = Requirement(match["pin"])
            found.setdefault(canonicalize_name(requirement.name), set()).add(str(requirement.specifier))
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_each_package_is_pinned_and_hashed_and_from_nowhere_in_particular(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    blocks = re.split(r"\n(?=[\w])", text.partition("make lock\n")[2])
    assert blocks
    assert all(PIN.match(block.splitlines()[0]) and "--hash=sha256:" in block for block in blocks)
    assert "://" not in text
    assert "--index" not in text


def test_the_locks_differ_in_spark_only() -> None:
    dev, demo, *others = map(pins, ("dev", "demo", *SPARKS))
    assert others
    for spark in others:
        assert {name for name in dev.keys() | spark.keys() if dev.get(name) != spark.get(name)} - {"py4j"} == {
            "pyspark"
        }
    assert demo
    assert {name for name, versions in demo.items() if versions != dev.get(name)} <= {"pyspark", "py4j"}


def test_what_a_set_up_itself_needs_is_locked_for_every_python() -> None:
    """uv on a machine without it, and what builds pyspark and headwater."""
    text = (ROOT / "requirements/dev.lock").read_text(encoding="utf-8")
    assert all(re.search(rf"^{name}==[^ ]+ \\$", text, re.MULTILINE) for name in ("uv", "setuptools", "hatchling"))


@pytest.mark.parametrize(("line", "extra"), [("dev", "dev"), *((line, "dev") for line in SPARKS), ("demo", "demo")])
def test_whatever_we_require_is_locked_within_its_range(line: str, extra: str) -> None:
    locked = pins(line)
    required = [Requirement(text) for text in distribution("headwater").requires or []]
    needed = [each for each in required if each.marker is None or each.marker.evaluate({"extra": extra})]
    names = [each for each in needed if each.name != "headwater"]
    assert len(names) >= 4
    for requirement in names:
        pinned_versions = [pin.removeprefix("==") for pin in locked[canonicalize_name(requirement.name)]]
        assert all(requirement.specifier.contains(pinned) for pinned in pinned_versions), requirement


def test_the_installation_matches_the_lock() -> None:
    """Tests run on the locked versions, not on whatever somebody has put into .venv since."""
    locked = pins("dev")
    for name in ("pydantic", "fastavro", "confluent-kafka", "sqlalchemy", "pyspark", "pytest", "mypy"):
        assert f"=={version(name)}" in locked[name]
