"""`headwater.events` has the kinds of events and what people look for, and says by example how it is used."""

from __future__ import annotations

import ast
import doctest
import importlib
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import pytest

import headwater.events
import headwater.spi
from headwater.events import KINDS, TableName
from headwater.events.base import Model
from headwater.events.catalog import CatalogContext
from headwater.lineage import api

REPOSITORY = Path(__file__).parents[3]
MODULES = ("base", "catalog", "changes", "column_lineage", "envelope", "errors", "health", "jobs", "names", "scalars")
EXAMPLES = {
    "lake": CatalogContext(name="lake", class_name="org.apache.iceberg.spark.SparkCatalog"),
    "orders": TableName(catalog="lake", database="sales", table="orders"),
}


def known_names() -> dict[str, Any]:
    """What the examples of events may use without an import."""
    modules = [importlib.import_module(f"headwater.events.{name}") for name in (*MODULES, "tables", "administration")]
    found = {name: value for module in modules for name, value in vars(module).items() if name[0] != "_"}
    return found | {name: getattr(headwater.events, name) for name in headwater.events.__all__} | EXAMPLES


def exported() -> list[Any]:
    found = [getattr(module, name) for module in (headwater.events, headwater.spi) for name in module.__all__]
    of_stores = [each for each in vars(api).values() if getattr(each, "__module__", None) == api.__name__]
    return [each for each in (*found, *of_stores) if isinstance(each, type | FunctionType)]


def test_every_kind_of_event_is_exported() -> None:
    assert set(KINDS) <= set(headwater.events.__all__)


def test_what_people_look_for_is_exported() -> None:
    assert {"encode", "decode", "redact", "Event", "TableName", "DatasetId"} <= set(headwater.events.__all__)
    assert hasattr(headwater.events.Event, "to_json")


@pytest.mark.parametrize("module", [headwater.events, headwater.spi], ids=["events", "spi"])
def test_what_is_exported_is_there(module: ModuleType) -> None:
    found = {name: getattr(module, name) for name in module.__all__}
    assert {name for name, value in found.items() if isinstance(value, type) and value.__name__ != name} == set()
    assert Model not in found.values()


@pytest.mark.parametrize("each", exported(), ids=lambda each: str(each.__name__))
def test_what_is_exported_says_by_example_how_it_is_used(each: Any) -> None:
    finder, runner = doctest.DocTestFinder(recurse=False), doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    names = known_names() | vars(api) | {name: getattr(headwater.spi, name) for name in headwater.spi.__all__}
    found = [test for test in finder.find(each, each.__name__, globs=names) if test.examples]
    assert found, f"{each.__name__} has no example in its docstring"
    assert [runner.run(test).failed for test in found] == [0] * len(found)


def names_of_types(module: Path) -> Iterator[str]:
    """The public classes and aliases of types that a module defines; type variables mean nothing by themselves."""
    for each in ast.parse(module.read_text("utf-8")).body:
        if isinstance(each, ast.ClassDef):
            yield each.name
        elif isinstance(each, ast.AnnAssign) and ast.unparse(each.annotation) == "TypeAlias":
            yield ast.unparse(each.target)
        elif isinstance(each, ast.Assign) and not ast.unparse(each.value).startswith(("TypeVar", "ParamSpec")):
            yield from (name for target in each.targets if not (name := ast.unparse(target)).isupper())


@pytest.mark.slow
def test_a_public_type_name_means_one_thing() -> None:
    """Two modules may have private types of one name, and a private module may name its own as it likes."""
    seen: dict[str, set[str]] = {}
    for root in ("events", "listeners", "publishers", "consumers"):
        for module in (REPOSITORY / root).rglob("*.py"):
            for name in names_of_types(module) if module.name[0] != "_" or module.stem == "__init__" else ():
                if name[:1].isupper():
                    seen.setdefault(name, set()).add(str(module.relative_to(REPOSITORY)))
    assert "CommandOutput" in seen
    assert {name: modules for name, modules in seen.items() if len(modules) > 1} == {}
