"""Expressions as text: SQL as far as it goes, literals as `?`, and no longer than anybody reads.

The text is written from the left until it is long enough, so that what it costs doesn't depend on the expression.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple, TypeAlias

from headwater.listeners.capture.plan.columns.origins import Origins
from headwater.listeners.capture.plan.columns.types import sql_name
from headwater.listeners.capture.plan.columns.values import Scope, Value
from headwater.listeners.capture.plan.tree import Expression, Plan

MOST: Final = 500
"""Characters of a text, with the mark at the end of one that was longer."""
_MARK: Final = "…"
_PLAIN: Final = re.compile(r"[A-Za-z_]\w*\Z")
_COUNTED: Final = re.compile(r"#\d+L?")
_SYMBOLS: Final = {"&&": "and", "||": "or"}
_CHAINED: Final = frozenset(["+", "*", "and", "or"])


class _Inside(NamedTuple):
    """A child, and the operator that it is an operand of: empty where no brackets are needed."""

    reference: int
    symbol: str = ""


_Piece: TypeAlias = "str | _Inside"


class Followed(NamedTuple):
    """Where a value comes from, as far as it is only passed on."""

    reference: int
    scope: Scope
    value: Value | None = None
    fields: tuple[str, ...] = ()
    """Of what `reference` is, if it isn't a value already."""


class _Written(NamedTuple):
    pieces: list[_Piece]
    symbol: str
    """The operator that it is; empty where it stands for itself."""
    scope: Scope


class Renderer:
    def __init__(
        self,
        plan: Plan,
        origins: Origins,
        follow: Callable[[int, Scope], Followed],
        given: Callable[[int], list[tuple[int, Value]]],
    ) -> None:
        self._plan = plan
        self._origins = origins
        self._follow = follow
        self._given = given

    def text(self, reference: int, scope: Scope) -> tuple[str, bool]:
        """The text, and whether it needs brackets inside of another."""
        top = self._written(reference, scope)
        waiting = [(each, top.scope) for each in reversed(top.pieces)]
        found: list[str] = []
        room = MOST
        while waiting and room > 0:
            piece, place = waiting.pop()
            if isinstance(piece, str):
                found.append(piece)
                room -= len(piece)
            else:
                inner = self._written(piece.reference, place)
                waiting.extend((each, inner.scope) for each in reversed(_bracketed(inner, piece.symbol)))
        text = "".join(found)
        return (text[: MOST - 1] + _MARK if waiting or room < 0 else text), bool(top.symbol)

    def _written(self, reference: int, scope: Scope) -> _Written:
        reference, scope, held, fields = self._follow(reference, scope)
        if held is not None:
            text, is_compound = self._held(reference, held)
            return _Written([text], " " if is_compound else "", scope)
        if fields:
            return _Written([_Inside(reference, " "), *(f".{_quoted(each)}" for each in fields)], "", scope)
        expression = self._plan.expressions[reference]
        if "symbol" in expression.details and len(expression.inputs) == 2:
            return _operator(expression, scope)
        form = _FORMS.get(expression.name)
        if form is not None:
            return _Written([*form(expression)], " " if expression.name in _COMPOUND else "", scope)
        return _Written(self._with_plan(expression), "", scope)

    def _with_plan(self, expression: Expression) -> list[_Piece]:
        """What needs the plan beside the expression."""
        if expression.name == "Cast" and "type" in expression.details:
            kind = sql_name(self._plan.types[expression.details["type"]])
            return ["cast(", _Inside(expression.inputs[0]), f" as {kind})"]
        if expression.name == "AggregateExpression":
            return self._aggregate(expression)
        if "plan" in expression.details:
            return [self._subquery(expression)]
        return [*_call(expression)]

    def _aggregate(self, expression: Expression) -> list[_Piece]:
        """`count(distinct a) filter (where b)`."""
        function = expression.inputs[0]
        pieces: list[_Piece] = [_Inside(function)]
        if expression.details.get("distinct") and function >= 0:
            pieces = [*_call(self._plan.expressions[function], "distinct ")]
        for condition in expression.inputs[1:]:
            pieces += [" filter (where ", _Inside(condition), ")"]
        return pieces

    def _subquery(self, expression: Expression) -> str:
        if expression.name == "Exists":
            return "exists(select)"
        columns = (self._held(-1 - each, held)[0] for each, held in self._given(expression.details["plan"])[:9])
        return f"(select {', '.join(columns)})"

    def _held(self, reference: int, held: Value) -> tuple[str, bool]:
        """What it was made by, or the column that it is; its own name where it is several things."""
        if len(held.parts) == 1:
            part = held.parts[0]
            if part.text is not None:
                return part.text, part.is_compound
            if len(part.members) == 1:
                return ".".join(map(_quoted, self._origins.place(next(iter(part.members)))[1])), False
        if reference < 0:
            return _quoted(self._name(-1 - reference)), False
        return _quoted(str(self._plan.expressions[reference].details.get("name", "?"))), False

    def _name(self, attribute: int) -> str:
        """Spark counts expressions in some of the names that it makes up."""
        known = self._plan.attributes[attribute]
        return _COUNTED.sub("", known.name) if known is not None else "?"


def _bracketed(written: _Written, outer: str) -> list[_Piece]:
    inner = written.symbol
    if not inner or not outer or (inner == outer and inner in _CHAINED):
        return written.pieces
    return ["(", *written.pieces, ")"]


def _quoted(name: str) -> str:
    return name if _PLAIN.match(name) else "`" + name.replace("`", "``") + "`"


def _operator(expression: Expression, scope: Scope) -> _Written:
    """`a + b`; of a chain of one operator only what stands on the right is bracketed."""
    told = str(expression.details["symbol"])
    symbol = _SYMBOLS.get(told, told)
    left, right = expression.inputs
    return _Written([_Inside(left, symbol), f" {symbol} ", _Inside(right, " ")], symbol, scope)


def _call(expression: Expression, before: str = "") -> Iterator[_Piece]:
    details = expression.details
    yield str(details.get("function") or details.get("name") or expression.name.rstrip("$").lower())
    yield f"({before}"
    yield from _listed(expression.inputs)
    yield ")"


def _listed(references: tuple[int, ...]) -> Iterator[_Piece]:
    for n, each in enumerate(references):
        if n:
            yield ", "
        yield _Inside(each)


def _literal(expression: Expression) -> Iterator[_Piece]:
    details = expression.details
    if "value" not in details:
        yield "?"
    elif details["value"] is None or isinstance(details["value"], bool):
        yield json.dumps(details["value"])
    else:
        yield "'" + str(details["value"]).replace("'", "''") + "'"


def _case(expression: Expression) -> Iterator[_Piece]:
    inputs = expression.inputs
    yield "case"
    for condition, chosen in zip(inputs[::2], inputs[1::2], strict=False):
        yield from (" when ", _Inside(condition), " then ", _Inside(chosen))
    if len(inputs) % 2:
        yield from (" else ", _Inside(inputs[-1]))
    yield " end"


def _struct(expression: Expression) -> Iterator[_Piece]:
    yield "struct("
    names = expression.details.get("fields") or ["?"] * (len(expression.inputs) // 2)
    for n, (name, each) in enumerate(zip(names, expression.inputs[1::2], strict=False)):
        yield from (", " if n else "", _Inside(each), f" as {_quoted(name)}")
    yield ")"


def _window(expression: Expression) -> Iterator[_Piece]:
    """Without the frame."""
    arguments = expression.details.get("args", {})
    parts: list[str] = []
    for name, words in (("partitionSpec", "partition by "), ("orderSpec", "order by ")):
        given = arguments.get(name)
        references = given.get("x", ()) if isinstance(given, dict) else ()
        if references:
            yield f"{' ' if parts else ''}{words}"
            yield from _listed(tuple(references))
            parts.append(name)


def _lambda(expression: Expression) -> Iterator[_Piece]:
    body, *variables = expression.inputs
    yield from _listed(tuple(variables))
    yield " -> "
    yield _Inside(body)


def _around(*words: str) -> Callable[[Expression], Iterator[_Piece]]:
    """The words, with the children between them."""

    def form(expression: Expression) -> Iterator[_Piece]:
        for word, each in zip(words, (*expression.inputs, None), strict=False):
            yield word
            if each is not None:
                yield _Inside(each, " ")

    return form


def _in(expression: Expression) -> Iterator[_Piece]:
    first, *others = expression.inputs
    yield from (_Inside(first, " "), " in (", *_listed(tuple(others)), ")")


def _in_query(expression: Expression) -> Iterator[_Piece]:
    *values, query = expression.inputs
    listed = [*_listed(tuple(values))]
    yield from (["(", *listed, ")"] if len(values) > 1 else listed)
    yield " in "
    yield _Inside(query)


def _named(expression: Expression) -> Iterator[_Piece]:
    yield _quoted(str(expression.details.get("name", "?")))


def _field(expression: Expression) -> Iterator[_Piece]:
    yield from (_Inside(expression.inputs[0], " "), f".{_quoted(str(expression.details['field']))}")


_FORMS: Final[Mapping[str, Callable[[Expression], Iterator[_Piece]]]] = {
    "BoundReference": lambda _: iter(("input",)),
    "CaseWhen": _case,
    "CreateNamedStruct": _struct,
    "GetArrayItem": _around("", "[", "]"),
    "GetArrayStructFields": _field,
    "GetMapValue": _around("", "[", "]"),
    "In": _in,
    "InSubquery": _in_query,
    "IsNotNull": _around("", " is not null"),
    "IsNull": _around("", " is null"),
    "LambdaFunction": _lambda,
    "Like": _around("", " like ", ""),
    "Literal": _literal,
    "NamedLambdaVariable": _named,
    "Not": _around("not ", ""),
    "OuterReference": _named,
    "SortOrder": lambda expression: iter((_Inside(expression.inputs[0]),)),
    "UnaryMinus": _around("-", ""),
    "WindowSpecDefinition": _window,
    "WindowExpression": lambda e: iter((_Inside(e.inputs[0]), " over (", _Inside(e.inputs[1]), ")")),
}
_COMPOUND: Final = frozenset(["In", "InSubquery", "IsNotNull", "IsNull", "LambdaFunction", "Like", "Not", "UnaryMinus"])
