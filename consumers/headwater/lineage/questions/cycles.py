"""Finds the edges of a graph that are part of a cycle."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator
from typing import TypeVar

N = TypeVar("N", bound=Hashable)


def find_cycle_edges(edges: Collection[tuple[N, N]]) -> set[tuple[N, N]]:
    """Return the edges whose ends reach each other: both are in one strongly connected component. Tarjan's algorithm
    without recursion."""
    component = number_components(edges)
    return {(one, other) for one, other in edges if component[one] == component[other]}


def number_components(edges: Collection[tuple[N, N]]) -> dict[N, int]:
    """Return the number of each node's strongly connected component. Edges between components lead to lower numbers."""
    following: dict[N, list[N]] = {}
    for one, other in edges:
        following.setdefault(one, []).append(other)
        following.setdefault(other, [])
    number: dict[N, int] = {}
    lowest: dict[N, int] = {}
    component: dict[N, int] = {}
    stack: list[N] = []
    for root, ends in following.items():
        if root in number:
            continue
        number[root] = lowest[root] = len(number)
        stack.append(root)
        path: list[tuple[N, Iterator[N]]] = [(root, iter(ends))]
        while path:
            node, rest = path[-1]
            for other in rest:
                if other not in number:
                    number[other] = lowest[other] = len(number)
                    stack.append(other)
                    path.append((other, iter(following[other])))
                    break
                if other not in component:
                    lowest[node] = min(lowest[node], number[other])
            else:
                path.pop()
                if path:
                    lowest[path[-1][0]] = min(lowest[path[-1][0]], lowest[node])
                if lowest[node] == number[node]:
                    _close(node, stack, component)
    return component


def _close(node: N, stack: list[N], component: dict[N, int]) -> None:
    mark = len(component)
    while True:
        member = stack.pop()
        component[member] = mark
        if member == node:
            return
