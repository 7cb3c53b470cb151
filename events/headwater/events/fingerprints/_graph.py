"""One content for all orders in which inputs, outputs and the edges between them can be listed.

Inputs that are alike (a table read twice) are distinguished by the columns that go out of them: each node's colour
takes in the colours of what it is connected to, until no more nodes differ. Where all outputs differ, inputs that are
still alike have the same edges to the same outputs: exchanging them changes nothing, so the content is exact. Outputs
that are alike too (one table written twice by one statement, with the same columns) are distinguished in the same way,
except where edges between twins on both sides cross as evenly as they could run side by side: two such shapes have one.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any, Literal, NamedTuple, TypeAlias

Node: TypeAlias = tuple[Literal["input", "output"], int]


class Edge(NamedTuple):
    source: Node
    sink: Node
    label: str


def digest(content: Any) -> bytes:
    """128 bits of what JSON can say, whatever the order of keys; half a surrogate pair is no obstacle."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def order_free(inputs: Sequence[Any], outputs: Sequence[Any], edges: Iterable[Edge]) -> list[Any]:
    """The same for any order of inputs, outputs and edges. How often an input or output is there counts; an edge said
    twice is one."""
    distinct = set(edges)
    ends = {end for edge in distinct for end in (edge.source, edge.sink)}
    colours: dict[Node, str] = {end: digest(["missing", *end]).hex() for end in ends}
    colours |= {("input", at): digest(["input", content]).hex() for at, content in enumerate(inputs)}
    colours |= {("output", at): digest(["output", content]).hex() for at, content in enumerate(outputs)}
    colours = _refine_colours(colours, distinct)
    return [
        sorted(colours.values()),
        sorted([colours[edge.source], edge.label, colours[edge.sink]] for edge in distinct),
    ]


def _refine_colours(colours: Mapping[Node, str], edges: Collection[Edge]) -> dict[Node, str]:
    """A round that tells no more nodes apart is the last."""
    finer = dict(colours)
    while len(finer) > (distinct := len(set(finer.values()))):
        finer = _next_round(finer, edges)
        if len(set(finer.values())) == distinct:
            break
    return finer


def _next_round(colours: Mapping[Node, str], edges: Iterable[Edge]) -> dict[Node, str]:
    around: defaultdict[Node, list[list[str]]] = defaultdict(list)
    for edge in edges:
        around[edge.source].append([edge.label, colours[edge.sink]])
        around[edge.sink].append([edge.label, colours[edge.source]])
    return {node: digest([colour, sorted(around[node])]).hex() for node, colour in colours.items()}
