"""Expressions as text: SQL as far as it goes, literals as `?`, and no longer than anybody reads.

The text is written from the left until it is long enough, so that what it costs doesn't depend on the expression.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple, TypeAlias

from headwater.listeners.capture.plan.columns.origins import OriginSets
from headwater.listeners.capture.plan.columns.values import ColumnValue, Scope, sql_name
from headwater.listeners.capture.plan.tree import Expression, Plan

MAX_LENGTH: Final = 500
"""Characters of a text, with the mark at the end of one that was longer."""
_ELLIPSIS: Final = "…"
_PLAIN_NAME: Final = re.compile(r"[A-Za-z_]\w*\Z")
_EXPR_ID: Final = re.compile(r"#\d+L?")
_SYMBOLS: Final = {"&&": "and", "||": "or"}
_ASSOCIATIVE: Final = frozenset(["+", "*", "and", "or"])


class _ChildText(NamedTuple):
    """A child, and the operator that it is an operand of: empty where no brackets are needed."""

    reference: int
    symbol: str = ""


_TextPiece: TypeAlias = "str | _ChildText"


class PassedValue(NamedTuple):
    """Where a value comes from, as far as it is only passed on."""

    reference: int
    scope: Scope
    value: ColumnValue | None = None
    fields: tuple[str, ...] = ()
    """Of what `reference` is, if it isn't a value already."""


class _RenderedText(NamedTuple):
    pieces: list[_TextPiece]
    symbol: str
    """The operator that it is; empty where it stands for itself."""
    scope: Scope


class ExpressionRenderer:
    def __init__(
        self,
        plan: Plan,
        origins: OriginSets,
        follow: Callable[[int, Scope], PassedValue],
        given: Callable[[int], list[tuple[int, ColumnValue]]],
    ) -> None:
        self._plan = plan
        self._origins = origins
        self._follow = follow
        self._given = given

    def text(self, reference: int, scope: Scope) -> tuple[str, bool]:
        """The text, and whether it needs brackets inside of another."""
        top = self._render_reference(reference, scope)
        waiting = [(piece, top.scope) for piece in reversed(top.pieces)]
        found: list[str] = []
        room = MAX_LENGTH
        while waiting and room > 0:
            piece, place = waiting.pop()
            if isinstance(piece, str):
                found.append(piece)
                room -= len(piece)
            else:
                inner = self._render_reference(piece.reference, place)
                waiting.extend((part, inner.scope) for part in reversed(_with_brackets(inner, piece.symbol)))
        text = "".join(found)
        return (text[: MAX_LENGTH - 1] + _ELLIPSIS if waiting or room < 0 else text), bool(top.symbol)

    def _render_reference(self, reference: int, scope: Scope) -> _RenderedText:
        reference, scope, held, fields = self._follow(reference, scope)
        if held is not None:
            text, is_compound = self._render_value(reference, held)
            return _RenderedText([text], " " if is_compound else "", scope)
        if fields:
            return _RenderedText([_ChildText(reference, " "), *(f".{_quote(name)}" for name in fields)], "", scope)
        expression = self._plan.expressions[reference]
        if "symbol" in expression.details and len(expression.inputs) == 2:
            return _operator(expression, scope)
        form = _FORMS.get(expression.name)
        if form is not None:
            return _RenderedText([*form(expression)], " " if expression.name in _COMPOUND else "", scope)
        return _RenderedText(self._with_plan(expression), "", scope)

    def _with_plan(self, expression: Expression) -> list[_TextPiece]:
        """What needs the plan beside the expression."""
        if expression.name == "Cast" and "type" in expression.details:
            kind = sql_name(self._plan.types[expression.details["type"]])
            return ["cast(", _ChildText(expression.inputs[0]), f" as {kind})"]
        if expression.name == "AggregateExpression":
            return self._aggregate(expression)
        if "plan" in expression.details:
            return [self._subquery(expression)]
        return [*_call(expression)]

    def _aggregate(self, expression: Expression) -> list[_TextPiece]:
        """`count(distinct a) filter (where b)`."""
        function = expression.inputs[0]
        pieces: list[_TextPiece] = [_ChildText(function)]
        if expression.details.get("distinct") and function >= 0:
            pieces = [*_call(self._plan.expressions[function], "distinct ")]
        for condition in expression.inputs[1:]:
            pieces += [" filter (where ", _ChildText(condition), ")"]
        return pieces

    def _subquery(self, expression: Expression) -> str:
        if expression.name == "Exists":
            return "exists(select)"
        columns = (
            self._render_value(-1 - attribute, held)[0]
            for attribute, held in self._given(expression.details["plan"])[:9]
        )
        return f"(select {', '.join(columns)})"

    def _render_value(self, reference: int, held: ColumnValue) -> tuple[str, bool]:
        """What it was made by, or the column that it is; its own name where it is several things."""
        if len(held.parts) == 1:
            part = held.parts[0]
            if part.text is not None:
                return part.text, part.is_compound
            if len(part.members) == 1:
                return ".".join(map(_quote, self._origins.place(next(iter(part.members)))[1])), False
        if reference < 0:
            return _quote(self._name(-1 - reference)), False
        return _quote(str(self._plan.expressions[reference].details.get("name", "?"))), False

    def _name(self, attribute: int) -> str:
        """Spark counts expressions in some of the names that it makes up."""
        known = self._plan.attributes[attribute]
        return _EXPR_ID.sub("", known.name) if known is not None else "?"


def _with_brackets(written: _RenderedText, outer: str) -> list[_TextPiece]:
    inner = written.symbol
    if not inner or not outer or (inner == outer and inner in _ASSOCIATIVE):
        return written.pieces
    return ["(", *written.pieces, ")"]


def _quote(name: str) -> str:
    return name if _PLAIN_NAME.match(name) else "`" + name.replace("`", "``") + "`"


def _operator(expression: Expression, scope: Scope) -> _RenderedText:
    """`a + b`; of a chain of one operator only what stands on the right is bracketed."""
    word = str(expression.details["symbol"])
    symbol = _SYMBOLS.get(word, word)
    left, right = expression.inputs
    return _RenderedText([_ChildText(left, symbol), f" {symbol} ", _ChildText(right, " ")], symbol, scope)


def _call(expression: Expression, before: str = "") -> Iterator[_TextPiece]:
    details = expression.details
    yield str(details.get("function") or details.get("name") or expression.name.rstrip("$").lower())
    yield f"({before}"
    yield from _comma_list(expression.inputs)
    yield ")"


def _comma_list(references: tuple[int, ...]) -> Iterator[_TextPiece]:
    for n, reference in enumerate(references):
        if n:
            yield ", "
        yield _ChildText(reference)


def _literal(expression: Expression) -> Iterator[_TextPiece]:
    details = expression.details
    if "value" not in details:
        yield "?"
    elif details["value"] is None or isinstance(details["value"], bool):
        yield json.dumps(details["value"])
    else:
        yield "'" + str(details["value"]).replace("'", "''") + "'"


def _case(expression: Expression) -> Iterator[_TextPiece]:
    inputs = expression.inputs
    yield "case"
    for condition, chosen in zip(inputs[::2], inputs[1::2], strict=False):
        yield from (" when ", _ChildText(condition), " then ", _ChildText(chosen))
    if len(inputs) % 2:
        yield from (" else ", _ChildText(inputs[-1]))
    yield " end"


def _struct(expression: Expression) -> Iterator[_TextPiece]:
    yield "struct("
    names = expression.details.get("fields") or ["?"] * (len(expression.inputs) // 2)
    for n, (name, reference) in enumerate(zip(names, expression.inputs[1::2], strict=False)):
        yield from (", " if n else "", _ChildText(reference), f" as {_quote(name)}")
    yield ")"


def _window(expression: Expression) -> Iterator[_TextPiece]:
    """Without the frame."""
    arguments = expression.details.get("args", {})
    parts: list[str] = []
    for name, words in (("partitionSpec", "partition by "), ("orderSpec", "order by ")):
        given = arguments.get(name)
        references = given.get("x", ()) if isinstance(given, dict) else ()
        if references:
            yield f"{' ' if parts else ''}{words}"
            yield from _comma_list(tuple(references))
            parts.append(name)


def _lambda(expression: Expression) -> Iterator[_TextPiece]:
    body, *variables = expression.inputs
    yield from _comma_list(tuple(variables))
    yield " -> "
    yield _ChildText(body)


def _surround(*words: str) -> Callable[[Expression], Iterator[_TextPiece]]:
    """The words, with the children between them."""

    def form(expression: Expression) -> Iterator[_TextPiece]:
        for word, reference in zip(words, (*expression.inputs, None), strict=False):
            yield word
            if reference is not None:
                yield _ChildText(reference, " ")

    return form


def _in(expression: Expression) -> Iterator[_TextPiece]:
    first, *others = expression.inputs
    yield from (_ChildText(first, " "), " in (", *_comma_list(tuple(others)), ")")


def _in_query(expression: Expression) -> Iterator[_TextPiece]:
    *values, query = expression.inputs
    listed = [*_comma_list(tuple(values))]
    yield from (["(", *listed, ")"] if len(values) > 1 else listed)
    yield " in "
    yield _ChildText(query)


def _named_call(expression: Expression) -> Iterator[_TextPiece]:
    yield _quote(str(expression.details.get("name", "?")))


def _field(expression: Expression) -> Iterator[_TextPiece]:
    yield from (_ChildText(expression.inputs[0], " "), f".{_quote(str(expression.details['field']))}")


_FORMS: Final[Mapping[str, Callable[[Expression], Iterator[_TextPiece]]]] = {
    "BoundReference": lambda _: iter(("input",)),
    "CaseWhen": _case,
    "CreateNamedStruct": _struct,
    "GetArrayItem": _surround("", "[", "]"),
    "GetArrayStructFields": _field,
    "GetMapValue": _surround("", "[", "]"),
    "In": _in,
    "InSubquery": _in_query,
    "IsNotNull": _surround("", " is not null"),
    "IsNull": _surround("", " is null"),
    "LambdaFunction": _lambda,
    "Like": _surround("", " like ", ""),
    "Literal": _literal,
    "NamedLambdaVariable": _named_call,
    "Not": _surround("not ", ""),
    "OuterReference": _named_call,
    "SortOrder": lambda expression: iter((_ChildText(expression.inputs[0]),)),
    "UnaryMinus": _surround("-", ""),
    "WindowSpecDefinition": _window,
    "WindowExpression": lambda e: iter((_ChildText(e.inputs[0]), " over (", _ChildText(e.inputs[1]), ")")),
}
_COMPOUND: Final = frozenset(["In", "InSubquery", "IsNotNull", "IsNull", "LambdaFunction", "Like", "Not", "UnaryMinus"])
