"""Everything that events are made of can be imported from `headwater.events`."""

from __future__ import annotations

import importlib

import headwater.events
from headwater.events.base import FrozenMap, Model

MODULES = (
    "administration",
    "catalog",
    "changes",
    "envelope",
    "health",
    "jobs",
    "kinds",
    "lineage",
    "names",
    "scalars",
    "tables",
)


def test_every_public_class_is_exported_under_its_name() -> None:
    public: set[str] = set()
    for module_name in MODULES:
        module = importlib.import_module(f"headwater.events.{module_name}")
        public |= {
            name
            for name, value in vars(module).items()
            if isinstance(value, type) and value.__module__ == module.__name__ and not name.startswith("_")
        }
    assert public - set(headwater.events.__all__) == set()


def test_what_is_exported_is_there() -> None:
    exported = {name: getattr(headwater.events, name) for name in headwater.events.__all__}
    assert {name for name, value in exported.items() if isinstance(value, type) and value.__name__ != name} == set()
    assert Model not in exported.values()
    assert FrozenMap in exported.values()
