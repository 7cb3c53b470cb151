"""Edges of column lineage as one line, written by hand and compared as sets.

    id = c.id; x <- c.name, o.status; s << o.amount; s ? o.status; n over o.placed; one none; ~JOIN c.id, o.customer

`=` is IDENTITY, `<-` TRANSFORMATION, `<<` AGGREGATION, `?` CONDITIONAL, `over` WINDOW; what decides about rows stands
behind `~`. A column that is made of nothing is `none`: every column of the result is reported.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from headwater.listeners.capture.formats import row_changes_readers
from headwater.listeners.capture.plan.columns import ColumnOrigin, QueryLineage, lineage_of, merge_lineage
from headwater.listeners.capture.plan.tree import Plan

SIGNS: Final = {"=": "IDENTITY", "<-": "TRANSFORMATION", "<<": "AGGREGATION", "?": "CONDITIONAL", "over": "WINDOW"}
TABLES: Final = {"c": "customers", "o": "orders", "i": "items"}
_OF_COLUMN: Final = re.compile(r"(\S+) (=|<-|<<|\?|over) (.+)\Z")


def edges(text: str, tables: Mapping[str, str] = TABLES) -> set[str]:
    """Each edge as `derivation source > target`, and each column as itself."""
    found: set[str] = set()
    for entry in filter(None, map(str.strip, text.split(";"))):
        if entry.startswith("~"):
            derivation, _, sources = entry[1:].partition(" ")
            found |= {f"{derivation} {each}" for each in _sources(sources, tables)}
        elif entry.endswith(" none"):
            found.add(entry.removesuffix(" none"))
        else:
            parsed = _OF_COLUMN.match(entry)
            if parsed is None:
                raise ValueError(f"no edge: {entry}")
            found.add(parsed[1])
            found |= {f"{SIGNS[parsed[2]]} {each} > {parsed[1]}" for each in _sources(parsed[3], tables)}
    return found


def _sources(text: str, tables: Mapping[str, str]) -> Iterable[str]:
    for each in map(str.strip, text.split(",")):
        table, _, path = each.partition(".")
        yield f"{tables.get(table, table)}.{path}"


def edges_of(plan: Plan, query: int | None = None) -> set[str]:
    """The same of a query's lineage."""
    node = plan.root if query is None else query
    lineage = lineage_of(plan, node)
    found = _indirect(plan, lineage)
    for attribute in plan.nodes[node].output:
        found |= _of_target(plan, plan.attribute(attribute).name, lineage.columns[attribute])
    return found


def edges_of_changes(plan: Plan) -> set[str]:
    """The same of an UPDATE, DELETE or MERGE, by what is assigned."""
    lineage = merge_lineage(plan, plan.root, row_changes_readers())
    found = _indirect(plan, lineage)
    for path, origins in lineage.fields.items():
        found |= _of_target(plan, ".".join(path), origins)
    return found


def _indirect(plan: Plan, lineage: QueryLineage) -> set[str]:
    if lineage.unknown:
        raise AssertionError(f"not understood: {lineage.unknown}")
    if len(set(lineage.indirect)) != len(lineage.indirect):
        raise AssertionError(f"recorded twice: {lineage.indirect}")
    return {f"{each.derivation.value} {_source(plan, each)}" for each in lineage.indirect}


def _of_target(plan: Plan, target: str, origins: tuple[ColumnOrigin, ...]) -> set[str]:
    if len(set(origins)) != len(origins):
        raise AssertionError(f"recorded twice of {target}: {origins}")
    return {target, *(f"{each.derivation.value} {_source(plan, each)} > {target}" for each in origins)}


def _source(plan: Plan, origin: ColumnOrigin) -> str:
    return ".".join((table_of(plan, origin.leaf), *origin.path))


def table_of(plan: Plan, leaf: int) -> str:
    node = plan.nodes[leaf]
    for name in ("catalogTable", "identifier"):
        named = node.args.get(name)
        if named:
            return str(named["name"])
    return node.name
