"""Every test can fail: it asserts something itself, or calls what does.

It finds a test that only runs code, which is green whatever the code answers.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pytest

TESTS: Final = Path(__file__).parents[1]
Function = ast.FunctionDef | ast.AsyncFunctionDef
FAILS: Final = {"raises", "fail", "warns", "check_call", "check_output"}
"""What fails a test when it is called."""


Key = tuple[str, str]
"""A function: its module, dotted, and its name. Methods of one name in a module are one."""


@dataclass
class Functions:
    """All functions of some modules."""

    asserting: set[Key] = field(default_factory=set)
    """Those that assert by themselves."""
    names: dict[Key, set[str]] = field(default_factory=lambda: defaultdict(set))
    """What each may call: fixtures, functions that it hands over, methods."""
    imports: dict[str, list[Key]] = field(default_factory=lambda: defaultdict(list))
    lines: dict[Key, int] = field(default_factory=dict)
    """Of the tests."""

    def add(self, module: str, source: str) -> None:
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tests."):
                self.imports[module] += [(str(node.module), each.name) for each in node.names]
            if isinstance(node, Function):
                key = module, node.name
                self.names[key] |= set(names_in(node))
                if any(map(fails, ast.walk(node))):
                    self.asserting.add(key)
                if node.name.startswith("test_") and ".test_" in module:
                    self.lines[key] = node.lineno

    def called_by(self, key: Key) -> set[Key]:
        """Functions of these names in the same module, in what it imports, and fixtures of all tests."""
        module = key[0]
        near = {module, *(imported for imported, _ in self.imports[module])}
        near |= {name for name, _ in self.names if name.endswith(".conftest")}
        return {(each, name) for each in near for name in self.names[key] if (each, name) in self.names}

    def without_assertions(self) -> list[str]:
        """Return the tests from which no way of calls leads to an assertion."""
        calls = {key: self.called_by(key) for key in [*self.names]}
        sound, more = set[Key](), self.asserting
        while more:
            sound |= more
            more = {key for key, called in calls.items() if key not in sound and called & sound}
        return sorted(
            f"{module}:{line} {name}" for (module, name), line in self.lines.items() if (module, name) not in sound
        )


def names_in(node: Function) -> Iterator[str]:
    """Yield the names of what a function may call."""
    yield from (each.arg for each in node.args.args)
    for each in ast.walk(node):
        if isinstance(each, ast.Name):
            yield each.id
        elif isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute):
            yield each.func.attr


def fails(node: ast.AST) -> bool:
    """Whether this fails a test where something isn't as it has to be."""
    if isinstance(node, ast.Raise):
        return node.exc is not None and "AssertionError" in ast.dump(node.exc)
    if isinstance(node, ast.Call):
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        is_checked = any(each.arg == "check" and getattr(each.value, "value", None) is True for each in node.keywords)
        return name in FAILS or is_checked
    return isinstance(node, ast.Assert)


def without_assertions(sources: Iterable[tuple[str, str]]) -> list[str]:
    functions = Functions()
    for module, source in sources:
        functions.add(module, source)
    return functions.without_assertions()


def module_of(file: Path) -> str:
    return ".".join(("tests", *file.relative_to(TESTS).with_suffix("").parts))


@pytest.mark.slow
def test_every_test_can_fail() -> None:
    files = sorted(TESTS.rglob("*.py"))
    assert without_assertions((module_of(file), file.read_text("utf-8")) for file in files) == []


def test_a_test_that_checks_nothing_is_found() -> None:
    helper = "def seen(): looked()\ndef looked(): assert True\ndef idle(): pass\n"
    tests = "from tests.kit.helper import idle, seen\ndef test_a(): seen()\ndef test_b(): idle()\n"
    tests += "def test_c(seen): ...\ndef test_d(): raises(E)\n"
    found = without_assertions([("tests.kit.helper", helper), ("tests.unit.test_it", tests)])
    assert found == ["tests.unit.test_it:3 test_b"]
