"""Flat plans put together by hand, in the form in which the driver writes them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from headwater.listeners.capture.plan.tree import Plan


class Building:
    """Everything is added below what stands on it; references are as in a plan."""

    def __init__(self) -> None:
        self.types: list[str] = []
        self.attributes: list[Any] = []
        self.expressions: list[Any] = []
        self.nodes: list[dict[str, Any]] = []

    def type(self, text: str) -> int:
        if text not in self.types:
            self.types.append(text)
        return self.types.index(text)

    def attribute(self, name: str, kind: str = '"integer"') -> int:
        self.attributes.append([name, self.type(kind), True])
        return len(self.attributes) - 1

    def expression(self, kind: str, /, *inputs: int, **details: Any) -> int:
        self.expressions.append([kind, list(inputs), details])
        return len(self.expressions) - 1

    def alias(self, reference: int, name: str) -> tuple[int, int]:
        """The reference of the alias, and the id of the column that it makes."""
        made = self.attribute(name)
        return self.expression("Alias", reference, id=made, name=name), made

    def literal(self) -> int:
        return self.expression("Literal", type=self.type('"integer"'))

    def node(self, kind: str, inputs: Iterable[int] = (), out: Iterable[int] | None = None, **args: Any) -> int:
        entry: dict[str, Any] = {"c": kind, "in": list(inputs), "args": args}
        self.nodes.append(entry if out is None else {**entry, "out": list(out)})
        return len(self.nodes) - 1

    def relation(self, table: str, *columns: str) -> tuple[int, list[int]]:
        """The node, and the ids of its columns."""
        ids = [self.attribute(each) for each in columns]
        return self.node("LogicalRelation", out=ids, catalogTable={"name": table}), ids

    def project(self, below: int, named: Iterable[tuple[str, int]]) -> tuple[int, list[int]]:
        made = [self.alias(reference, name) for name, reference in named]
        ids = [each for _, each in made]
        return self.node("Project", [below], ids, projectList={"x": [ref for ref, _ in made]}), ids

    def filter(self, below: int, condition: int) -> int:
        return self.node("Filter", [below], condition={"x": condition})

    def add(self, *references: int) -> int:
        """`a + b + c + …`, as deep as there are."""
        first, *others = references
        for each in others:
            first = self.expression("Add", first, each, symbol="+")
        return first

    def plan(self, root: int | None = None) -> Plan:
        return Plan.parse(self.content(root))

    def content(self, root: int | None = None) -> dict[str, Any]:
        return {
            "root": len(self.nodes) - 1 if root is None else root,
            "types": self.types,
            "attributes": self.attributes,
            "expressions": self.expressions,
            "nodes": self.nodes,
        }


def column(attribute: int) -> int:
    """The reference of an attribute."""
    return -1 - attribute
