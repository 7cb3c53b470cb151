"""What the children of an expression do for its value."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final, TypeAlias

from headwater.listeners.capture.plan.columns.origins import DerivationRank
from headwater.listeners.capture.plan.tree import Expression

Role: TypeAlias = tuple[int, DerivationRank]
_VALUE, _CHOICE = DerivationRank.TRANSFORMATION, DerivationRank.CONDITIONAL

TRANSPARENT: Final = frozenset(
    [
        "Alias",
        "AssertNotNull",
        "CheckOverflowInTableInsert",
        "KnownFloatingPointNormalized",
        "KnownNotNull",
        "KnownNullable",
        "Nvl",
        "Nvl2",
        "NullIf",
        "PromotePrecision",
        "TempResolvedColumn",
        "UpCast",
    ]
)
"""Give what their first child is."""
PADDING: Final = frozenset(["charTypeWriteSideCheck", "varcharTypeWriteSideCheck", "readSidePadding"])
"""Functions that Spark puts around columns of type char and varchar: by the rules of SQL the value stays the same."""


def roles_of(expression: Expression) -> Iterator[Role]:
    """References to the children that count, each with what it does."""
    rule = _RULES.get(expression.name)
    return ((child, _VALUE) for child in expression.inputs) if rule is None else rule(expression)


def _chosen_by_first(expression: Expression) -> Iterator[Role]:
    first, *others = expression.inputs
    yield first, _CHOICE
    yield from ((child, _VALUE) for child in others)


def _chosen_by_others(expression: Expression) -> Iterator[Role]:
    """`max_by(x, y)`, `filter(array, condition)`."""
    first, *others = expression.inputs
    yield first, _VALUE
    yield from ((child, _CHOICE) for child in others)


def _case(expression: Expression) -> Iterator[Role]:
    """Condition, value, condition, value …, and the value of ELSE."""
    last = len(expression.inputs) - 1
    for n, child in enumerate(expression.inputs):
        yield child, _VALUE if n % 2 or n == last else _CHOICE


def _coalesce(expression: Expression) -> Iterator[Role]:
    """Each but the last decides, by being null, whether the next one counts."""
    for n, child in enumerate(expression.inputs):
        yield child, _VALUE
        if n < len(expression.inputs) - 1:
            yield child, _CHOICE


def _aggregate(expression: Expression) -> Iterator[Role]:
    """The function, and its FILTER."""
    function, *condition = expression.inputs
    yield function, DerivationRank.AGGREGATION
    yield from ((child, _CHOICE) for child in condition)


def _window(expression: Expression) -> Iterator[Role]:
    """The function, and the window: partitions, order, frame."""
    function, *window = expression.inputs
    yield function, _VALUE
    yield from ((child, DerivationRank.WINDOW) for child in window)


def _fields(expression: Expression) -> Iterator[Role]:
    """Names and values in turn."""
    return ((child, _VALUE) for child in expression.inputs[1::2])


def _body(expression: Expression) -> Iterator[Role]:
    """Of a lambda: what its variables hold are elements of what it is applied to."""
    return ((child, _VALUE) for child in expression.inputs[:1])


def _no_roles(expression: Expression) -> Iterator[Role]:
    """rank() names the columns of its window's order as its children."""
    return iter(())


_RULES: Final[Mapping[str, Callable[[Expression], Iterator[Role]]]] = {
    "AggregateExpression": _aggregate,
    "ArrayFilter": _chosen_by_others,
    "CaseWhen": _case,
    "Coalesce": _coalesce,
    "CreateNamedStruct": _fields,
    "DenseRank": _no_roles,
    "If": _chosen_by_first,
    "LambdaFunction": _body,
    "MapFilter": _chosen_by_others,
    "MaxBy": _chosen_by_others,
    "MinBy": _chosen_by_others,
    "PercentRank": _no_roles,
    "PivotFirst": _chosen_by_first,
    "Rank": _no_roles,
    "WindowExpression": _window,
}
