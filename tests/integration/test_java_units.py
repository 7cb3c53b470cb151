"""The parts of our Java that have logic of their own, each by itself: `tests/java`, a class of tests for each.

A test is a public method whose name begins with `test`, called on an object of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import pytest

from headwater.listeners.capture import jvm
from headwater.listeners.capture.jvm import JavaClasses
from tests.kit.spark.jvm import spark_classes

pytestmark = pytest.mark.spark
SOURCES: Final = {
    path.name: path.read_bytes() for path in sorted(Path(__file__).parents[1].joinpath("java").glob("*.java"))
}
METHODS: Final = [
    (name.removesuffix(".java"), method.decode())
    for name, text in SOURCES.items()
    for method in re.findall(rb"public void (test\w+)\(", text)
]


@pytest.fixture(scope="module")
def classes(java_home: Path) -> Iterator[JavaClasses]:
    """Our classes and their tests, compiled as in a driver."""
    everything = jvm.read_sources() | SOURCES
    with spark_classes(java_home) as gateway, pytest.MonkeyPatch.context() as patch:
        patch.setattr(jvm, "read_sources", lambda: everything)
        context: Any = SimpleNamespace(_gateway=gateway, _jvm=gateway.jvm)
        yield JavaClasses(context)


@pytest.mark.parametrize(("name", "method"), METHODS, ids=[f"{name}-{method}" for name, method in METHODS])
def test_java(classes: JavaClasses, name: str, method: str) -> None:
    assert getattr(classes.new(name), method)() is None, f"{name}.{method} throws what is wrong, and returns nothing"
