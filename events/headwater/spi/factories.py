"""Which listeners a configuration asks for: `spark.headwater.listeners = kafka, audit=mycompany.audit:AuditFactory`.

Each item is an entry point's name or `package.module:Factory`, with or without `name=` before it. The name says under
which prefix the listener finds its configuration, `spark.headwater.<name>.`, and under which cursor it reads the spool.
Without one it is the entry point's own; for a path it is its last word in small letters without `factory`, so that
`mycompany.audit:AuditFactory` is `audit`. One factory can serve twice: `main=kafka, backup=kafka`.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator
from dataclasses import dataclass
from typing import Final

from headwater import plugins
from headwater.errors import ConfigurationError, PluginError
from headwater.spi.listeners import ListenerFactory

LISTENERS: Final = "headwater.listeners"
"""The group of entry points that names listener factories."""

RESERVED_NAMES: Final = frozenset(
    {
        *("capture", "catalog", "enabled", "job", "lineage", "listeners", "metrics", "namespaces", "parent", "read"),
        *("spool", "store", "tags"),
    }
)
"""Sections of the configuration: no listener can have such a name."""

_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
_FACTORY: Final = "factory"


@dataclass(frozen=True)
class NamedFactory:
    """A factory that the configuration asks for, under the name that its keys have there."""

    name: str
    factory: ListenerFactory


@dataclass(frozen=True)
class Factories:
    """What was asked for: the application goes on with those that were found, and tells the faults."""

    found: tuple[NamedFactory, ...]
    faults: tuple[ConfigurationError | PluginError, ...]


def listener_factories(items: str, *, key: str = "spark.headwater.listeners") -> Factories:
    """The factories that the value of this key asks for, in its order. Nothing is raised: one that can't be had leaves
    the others alone."""
    found: dict[str, NamedFactory] = {}
    faults: list[ConfigurationError | PluginError] = []
    for item in _items(items):
        made = _named_factory(item, found)
        if isinstance(made, NamedFactory):
            found[made.name] = made
        else:
            faults.append(type(made)(f"{key}: {made}"))
    return Factories(tuple(found.values()), tuple(faults))


def check_name(name: str) -> None:
    """A ConfigurationError says why no listener can be called so."""
    if name.lower() in RESERVED_NAMES:
        raise ConfigurationError(
            f"no listener can be called {name}, because spark.headwater.{name} is a section of the configuration: "
            f"give it another name, as in my_{name}=…"
        )
    if not _NAME.fullmatch(name):
        raise ConfigurationError(
            f"no listener can be called {name!r}: a name begins with a letter and has at most 64 letters, digits, "
            "- and _; give it one, as in audit=mycompany.audit:AuditFactory"
        )


def name_and_reference(item: str) -> tuple[str, str]:
    """What a listener is called, and what its factory is found by. A ConfigurationError if it can't be called so."""
    given, is_named, rest = (part.strip() for part in item.partition("="))
    reference = rest if is_named else given
    name = given if is_named else _name_in(reference)
    check_name(name)
    if not reference:
        raise ConfigurationError(f"{item} doesn't say which factory: {name}=package.module:Factory")
    return name, reference


def _items(items: str) -> Iterator[str]:
    return (item.strip() for item in items.split(",") if item.strip())


def _named_factory(item: str, taken: Container[str]) -> NamedFactory | ConfigurationError | PluginError:
    try:
        name, reference = name_and_reference(item)
        if name not in taken:
            return NamedFactory(name, _factory(reference))
    except (ConfigurationError, PluginError) as e:
        return e
    return ConfigurationError(f"two listeners are called {name}: give one another name, as in other={reference}")


def _name_in(reference: str) -> str:
    module, is_path, attribute = reference.partition(":")
    if not is_path:
        return module
    return attribute.rpartition(".")[2].lower().removesuffix(_FACTORY).rstrip("_")


def _factory(reference: str) -> ListenerFactory:
    loaded = plugins.load(LISTENERS, reference)
    if not hasattr(loaded, "create") and (hasattr(loaded, "on_event") or hasattr(loaded, "handle")):
        raise PluginError(
            f"{reference} is a listener, and a factory is needed here: name a class whose create(self, context) "
            "returns the listener"
        )
    factory = plugins.create(LISTENERS, reference)
    if not isinstance(factory, ListenerFactory):
        raise PluginError(f"{reference} is no listener factory: it has no create(context)")
    plugins.check_methods(factory, {"create": "context", "diagnose": "context"})
    return factory
