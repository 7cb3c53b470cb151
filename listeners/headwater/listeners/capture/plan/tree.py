"""A plan as the driver wrote it: flat lists, each entry referring to those before it, so that nothing here recurses.

A reference to an expression is its place in `Plan.expressions`; one to an attribute is negative, `-1 - id`. Ids of
attributes are places in `Plan.attributes`. A node's `args` is what the case class was made of, by name; plans stand in
it as `{"p": node}`, expressions as `{"x": reference}` or `{"x": [references]}`.

A plan of too many parts is written briefly: operators below the command have no arguments and no columns, a leaf has
one column in the place of all, and plans in expressions are among the inputs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final

from headwater.errors import HeadwaterError

_EMPTY: Final[Mapping[str, Any]] = {}


class PlanError(HeadwaterError):
    """A plan isn't written the way it is read."""


@dataclass(frozen=True, slots=True)
class Attribute:
    """A column somewhere in a plan. `type` is Spark's type JSON; absent where the plan is unresolved."""

    id: int
    name: str
    type: str | None = None
    nullable: bool = True
    metadata: str | None = None


@dataclass(frozen=True, slots=True)
class Expression:
    """An expression that is no attribute."""

    name: str
    """Its class, without the package."""
    inputs: tuple[int, ...] = ()
    """References to its children, in order."""
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PlanNode:
    """An operator or command."""

    index: int
    name: str
    """Its class, without the package."""
    class_name: str | None
    """With the package, where that isn't Spark's own."""
    inputs: tuple[int, ...]
    """Its children's places among the nodes."""
    output: tuple[int, ...]
    """Ids of the attributes it gives."""
    args: Mapping[str, Any]

    def plan_of(self, name: str) -> int | None:
        """The node that an argument is."""
        value = self.args.get(name)
        return value.get("p") if isinstance(value, dict) else None

    def expressions_of(self, name: str) -> tuple[int, ...]:
        """The references that an argument is, one or many."""
        value = self.args.get(name)
        found = value.get("x", ()) if isinstance(value, dict) else ()
        return (found,) if isinstance(found, int) else tuple(found)


@dataclass(frozen=True)
class Plan:
    root: int
    types: tuple[str, ...]
    attributes: tuple[Attribute | None, ...]
    expressions: tuple[Expression, ...]
    nodes: tuple[PlanNode, ...]
    brief: int | None = None
    """Of a plan that is written briefly: more than so many parts it has."""
    session_catalog: int | None = None
    """The catalog that its session calls `spark_catalog`."""

    @classmethod
    def parse(cls, content: Mapping[str, Any]) -> Plan:
        try:
            types = tuple(content["types"])
            attributes = tuple(_attribute(n, attribute, types) for n, attribute in enumerate(content["attributes"]))
            expressions = tuple(_expression(expression) for expression in content["expressions"])
            nodes = _nodes(content["nodes"])
            return cls(
                content["root"],
                types,
                attributes,
                expressions,
                nodes,
                content.get("brief"),
                content.get("sessionCatalog"),
            )
        except (KeyError, IndexError, TypeError, ValueError) as e:
            raise PlanError(f"this plan can't be read: {type(e).__name__}: {e}") from e

    @cached_property
    def top(self) -> PlanNode:
        return self.nodes[self.root]

    @cached_property
    def catalogs(self) -> tuple[int, ...]:
        """The catalogs that it refers to: what their names mean is its session's business."""
        found = {} if self.session_catalog is None else {self.session_catalog: None}
        waiting: list[Any] = [node.args for node in self.nodes]
        while waiting:
            given = waiting.pop()
            if isinstance(given, dict):
                if isinstance(number := given.get("catalog"), int):
                    found[number] = None
                waiting.extend(value for value in given.values() if isinstance(value, (dict, list)))
            elif isinstance(given, list):
                waiting.extend(value for value in given if isinstance(value, (dict, list)))
        return tuple(found)

    def attribute(self, number: int) -> Attribute:
        found = self.attributes[number]
        if found is None:
            raise PlanError(f"attribute {number} is only referred to")
        return found

    def subtree(self, index: int) -> list[PlanNode]:
        """A node and all that is under it through `inputs`, children first, each once."""
        wanted, order = {index}, range(index, -1, -1)
        for place in order:
            if place in wanted:
                wanted.update(self.nodes[place].inputs)
        return [node for node in self.nodes[: index + 1] if node.index in wanted]

    def only(self, inputs: Mapping[int, Sequence[int]]) -> Plan:
        """The plan in which these nodes have only these of their inputs, and give the same columns."""
        nodes = [
            replace(node, inputs=tuple(node.inputs[place] for place in inputs[node.index]))
            if node.index in inputs
            else node
            for node in self.nodes
        ]
        return replace(self, nodes=tuple(nodes))

    def schema(self, reference: Any) -> Mapping[str, Any]:
        """The struct type, parsed, that `{"schema": n}` or the n of a catalog table's `schema` refers to."""
        number = reference["schema"] if isinstance(reference, Mapping) else reference
        return dict(json.loads(self.types[number]))


def _attribute(number: int, entry: list[Any] | None, types: Sequence[str]) -> Attribute | None:
    if entry is None:
        return None
    if len(entry) == 1:
        return Attribute(number, entry[0])
    name, kind, nullable, *rest = entry
    return Attribute(number, name, types[int(kind)], bool(nullable), rest[0] if rest else None)


def _expression(entry: Sequence[Any]) -> Expression:
    return Expression(entry[0], tuple(entry[1]), entry[2] if len(entry) > 2 else _EMPTY)


def _nodes(entries: Sequence[Mapping[str, Any]]) -> tuple[PlanNode, ...]:
    nodes: list[PlanNode] = []
    for index, entry in enumerate(entries):
        inputs = tuple(entry["in"])
        name, args = _canonical(entry["c"], entry["args"])
        nodes.append(PlanNode(index, name, entry.get("class"), inputs, _output(entry, inputs, nodes), args))
    return tuple(nodes)


def _canonical(name: str, args: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """Spark 4.1 does saveAsTable by a command of its own, that runs the one that all earlier versions ran."""
    if name != "SaveAsV1TableCommand":
        return name, args
    table = args.get("tableDesc") or {}
    if str(table.get("provider")).lower() == "hive":
        return "CreateHiveTableAsSelectCommand", args
    return "CreateDataSourceTableAsSelectCommand", {**args, "table": table}


def _output(entry: Mapping[str, Any], inputs: tuple[int, ...], nodes: Sequence[PlanNode]) -> tuple[int, ...]:
    """Written only where it is something else than the first child's; `*` is all children's."""
    attributes = entry.get("out")
    if attributes == "*":
        return tuple(attribute for child in inputs for attribute in nodes[child].output)
    if attributes is None:
        return nodes[inputs[0]].output if inputs else ()
    return tuple(attributes)
