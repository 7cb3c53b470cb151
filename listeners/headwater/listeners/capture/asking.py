"""Asks the formats, so that one that fails costs only the statements that are its own."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import Any, TypeVar

from headwater.listeners.capture.catalog.named_tables import NamedTable
from headwater.listeners.capture.catalog.table_evidence import NO_EVIDENCE, TableEvidence
from headwater.listeners.capture.context import CaptureContext
from headwater.listeners.capture.formats import FormatPlugin, plugins
from headwater.listeners.capture.plan.tree import Plan
from headwater.listeners.capture.statements import FormatFact, Statement

_LOG = logging.getLogger(__name__)
T = TypeVar("T")


def answers(plan: Plan, ask: Callable[[FormatPlugin], T | None]) -> Iterator[tuple[T, FormatPlugin]]:
    """What the formats answer about this plan that isn't None, in their order.

    An error of a format is raised where the plan has something of it: nobody else may answer for it then.
    """
    return _answers(ask, lambda plugin: plugin.is_last or _concerns(plugin, plan))


def answers_about(fact: FormatFact, ask: Callable[[FormatPlugin], T | None]) -> Iterator[tuple[T, FormatPlugin]]:
    """The same about what a hook noted."""
    return _answers(ask, lambda plugin: fact.get("hook") == plugin.name)


def find_evidence(named: NamedTable, statement: Statement, context: CaptureContext) -> TableEvidence:
    """What the formats know of a table that DDL was about: the first that has something to say."""

    def read(plugin: FormatPlugin) -> TableEvidence | None:
        return None if plugin.evidence is None else plugin.evidence(named, statement, context)

    found = next(answers(statement.plan, read), None)
    return NO_EVIDENCE if found is None else found[0]


def _answers(
    ask: Callable[[FormatPlugin], T | None], is_asked_for: Callable[[FormatPlugin], bool]
) -> Iterator[tuple[T, FormatPlugin]]:
    for plugin in plugins():
        try:
            found = ask(plugin)
        except Exception as e:  # a plug-in can fail in any way
            if is_asked_for(plugin):
                raise
            _report(plugin.name, f"{type(e).__name__}: {e}")
            continue
        if found is not None:
            yield found, plugin


def missing_parts(plan: Plan, degraded: Iterable[str]) -> Iterator[str]:
    """Those of the parts that aren't there whose format this plan reads or writes."""
    of_extractors = {plugin.java.extractor: plugin for plugin in plugins() if plugin.java is not None}
    known = {plugin.name for plugin in plugins()}
    for part in degraded:
        plugin = of_extractors.get(part)
        if plugin is not None and any(map(plugin.owns, _words(plan))):
            yield part
        elif plugin is None and part not in known and any(f".{part}." in word for word in _words(plan)):
            yield part  # a format that can't be loaded: its name is all that is known of its library


def _concerns(plugin: FormatPlugin, plan: Plan) -> bool:
    return any(word == plugin.name or plugin.owns(word) for word in _words(plan))


def _words(plan: Plan) -> Iterator[str]:
    """Whatever may be the name of a class or format in the nodes of a plan."""
    for node in plan.nodes:
        if node.class_name is not None:
            yield node.class_name
        waiting: list[Any] = [node.args]
        while waiting:
            value = waiting.pop()
            if isinstance(value, str):
                yield value
            elif isinstance(value, Mapping):
                yield from value
                waiting.extend(value.values())
            elif isinstance(value, list):
                waiting.extend(value)


@cache
def _report(name: str, why: str) -> None:
    """Once for each error."""
    _LOG.error("The format %s failed at what isn't its own: %s", name, why)
