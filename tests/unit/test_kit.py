"""Who imports what in tests: shared things have one place, so that nobody writes them a second time.

A test module that another one imports is collected twice over, and what it shares is found by nobody.
"""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit.drivers import ProcessGroup
from tests.kit.processes import is_alive
from tests.kit.waiting import until

TESTS = Path(__file__).parents[1]
FILES = sorted(TESTS.rglob("*.py"))
DOUBTFUL = re.compile(r"^\s*(?:from|import)\s+(?:\.|tests\b(?!\.kit\.))", re.MULTILINE)
"""What a file has in it that is worth to be parsed: to parse all takes seconds."""


def imported(source: str) -> Iterator[str]:
    """The modules of tests that a module imports, by their full names; those of the kit may be left out."""
    if not DOUBTFUL.search(source):
        return
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] == "tests")
        elif isinstance(node, ast.ImportFrom) and node.module == "tests":
            yield from (f"tests.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tests."):
            yield str(node.module)
        elif isinstance(node, ast.ImportFrom) and node.level:
            yield "a relative import"


def may_import(path: Path, module: str) -> bool:
    """Whether a file of tests may import this module of tests."""
    own = path.relative_to(TESTS).parts[0]
    is_program = own == "benchmarks" and not path.name.startswith("test_")
    rooms = ("tests.kit", "tests.benchmarks") if is_program else ("tests.kit",)
    return any(module == room or module.startswith(f"{room}.") for room in rooms)


def test_tests_import_of_tests_only_the_kit() -> None:
    found = {
        f"{path.relative_to(TESTS)} imports {module}"
        for path in FILES
        for module in imported(path.read_text(encoding="utf-8"))
        if not may_import(path, module)
    }
    assert not found


def test_what_is_not_a_test_stands_in_the_kit() -> None:
    """A helper beside tests is found by nobody who works in another folder."""
    others = {"kit", "benchmarks", "typing"}
    loose = [
        str(path.relative_to(TESTS))
        for path in FILES
        if not path.name.startswith("test_")
        and path.name not in ("__init__.py", "conftest.py")
        and path.relative_to(TESTS).parts[0] not in others
    ]
    assert not loose


def test_topics_are_created_in_one_place() -> None:
    """Who forgets that the client has to live until the answer is there gets a test that fails now and then."""
    own = ("kit/topics.py", "unit/test_kit.py")
    others = [path for path in FILES if path.relative_to(TESTS).as_posix() not in own]
    assert not [str(path) for path in others if ".create_topics(" in path.read_text(encoding="utf-8")]


@pytest.mark.parametrize(
    ("path", "source", "allowed"),
    [
        ("unit/bus/test_bus.py", "from tests.kit.bus import scripts", True),
        ("unit/bus/test_bus.py", "from tests.unit.bus.kit import Taking", False),
        ("unit/bus/test_bus.py", "from tests import unit", False),
        ("unit/bus/test_bus.py", "import tests.unit.bus.test_intake", False),
        ("unit/bus/test_bus.py", "from .test_intake import x", False),
        ("unit/bus/test_bus.py", "def f():\n    from tests.unit.test_docs import x", False),
        ("kit/waiting.py", "from tests.unit.test_docs import x", False),
        ("kit/waiting.py", "from tests.kit_of_others import x", False),
        ("benchmarks/bus.py", "from tests.benchmarks.harness import Table", True),
        ("benchmarks/bus.py", "from tests.faults.test_bus_kills import x", False),
        ("benchmarks/test_bus.py", "from tests.benchmarks.harness import Table", False),
        ("conftest.py", "from tests.kit import seeds", True),
    ],
)
def test_the_rule_sees_what_it_is_about(path: str, source: str, allowed: bool) -> None:
    assert all(may_import(TESTS / path, module) for module in imported(source)) is allowed


# What a test starts ends with it.


def test_a_process_that_a_test_leaves_ends_with_all_that_it_started() -> None:
    """A test that timed out left the driver of a validation and its JVM running: only what it had started itself was
    killed. Fails also if a block waits for a process that goes on."""
    shell = ["sh", "-c", "sleep 300 & echo $!; wait"]
    with ProcessGroup(shell, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        assert process.stdout is not None
        started = [process.pid, int(process.stdout.readline())]
        assert all(map(is_alive, started))
    until(lambda: not any(map(is_alive, started)), "the end of both")
