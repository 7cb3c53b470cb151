"""Reads types from SQL text: `struct<a:int,b:decimal(10,2)>`, `ARRAY<STRING>`, `a INT NOT NULL COMMENT 'x', b DATE`."""

from __future__ import annotations

import re
from collections import deque
from typing import Final, NamedTuple, NoReturn

from headwater.events.types.atoms import SIMPLE_BY_SQL, collated_string, parametrised
from headwater.events.types.ddl import COMMENT
from headwater.events.types.errors import MAX_NESTING, TypeTextError, bounded_stack, check_size, check_unicode, excerpt
from headwater.events.types.json_text import dumps
from headwater.events.types.sql_strings import unescape
from headwater.events.types.tree import NO_METADATA, Array, DataType, Field, Map, Opaque, Struct

_TOKEN: Final = re.compile(
    r"""\s*(?:(?P<word>\w+)|`(?P<quoted>[^`]*(?:``[^`]*)*)`"""
    r"""|(?P<string>'[^'\\]*(?:(?:\\.|'')[^'\\]*)*'|"[^"\\]*(?:(?:\\.|"")[^"\\]*)*")"""
    r"""|(?P<mark>[<>(),:]|-\d+)|(?P<end>\Z)|(?P<wrong>.))""",
    re.DOTALL,
)
_SYNONYMS: Final = {"dec": "decimal", "numeric": "decimal", "character": "char"}
_DEFAULT_ARGUMENTS: Final = {"decimal": [10, 0], "time": [6]}
_UNITS: Final = {"year", "month", "day", "hour", "minute", "second"}


def parse_ddl(text: str) -> DataType:
    """A type as Spark's SQL writes it, or the columns of a table as a struct; anything else raises TypeTextError.

    A word that isn't known is a type of a later Spark, kept as it stands: `geometry(4326)`.
    """
    check_size(text)
    check_unicode(text)
    with bounded_stack():
        return _whole(_Tokens(text))


def _whole(tokens: _Tokens) -> DataType:
    first, second = tokens.peek(), tokens.peek(1)
    is_columns = first.kind == "quoted" or (first.kind == "word" and _names_a_column(first, second))
    type_ = Struct(_fields(tokens, 0, end="")) if is_columns else _type(tokens, 0)
    tokens.expect("")
    return type_


def _names_a_column(first: Token, second: Token) -> bool:
    """Two words in a row are a column and its type, except in the types that have several words."""
    if second.kind == "mark" and second.text == ":":
        return True
    word, following = first.text.lower(), second.text.lower()
    if second.kind != "word":
        return False
    return not (word == "interval" and following in _UNITS) and not (word == "string" and following == "collate")


class Token(NamedTuple):
    kind: str
    text: str
    start: int


class _Tokens:
    """The words and marks of a text, one after the other."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._matches = _TOKEN.finditer(text)
        self._ahead: deque[Token] = deque()

    def peek(self, ahead: int = 0) -> Token:
        while len(self._ahead) <= ahead:
            match = next(self._matches, None)
            self._ahead.append(Token("end", "", len(self._text)) if match is None else _token(match))
        return self._ahead[ahead]

    def take(self) -> Token:
        token = self.peek()
        self._ahead.popleft()
        return token

    def skip(self, *texts: str) -> bool:
        """Steps over these words or marks if they come next."""
        for ahead, text in enumerate(texts):
            token = self.peek(ahead)
            if token.kind not in {"word", "mark"} or token.text.lower() != text:
                return False
        for _ in texts:
            self.take()
        return True

    def expect(self, mark: str) -> None:
        token = self.take()
        if token.text != mark or token.kind not in {"mark", "end"}:
            self.fail(token, f"{mark!r}" if mark else "the end")

    def fail(self, token: Token, expected: str) -> NoReturn:
        found = excerpt(token.text) if token.kind != "end" else "the end"
        raise TypeTextError(
            f"expected {expected} at character {token.start}, found {found!r}: {excerpt(self._text, token.start)!r}"
        )


def _token(match: re.Match[str]) -> Token:
    kind = match.lastgroup or "wrong"
    return Token(kind, match[kind], match.start(kind))


def _type(tokens: _Tokens, depth: int) -> DataType:
    token = tokens.take()
    if token.kind != "word":
        tokens.fail(token, "a type")
    word = token.text.lower()
    if word in {"array", "map", "struct"} and tokens.skip("<"):
        if depth >= MAX_NESTING:
            raise TypeTextError(f"more than {MAX_NESTING} types in each other at character {token.start}")
        return _complex(tokens, word, depth)
    return _atom(tokens, token, _SYNONYMS.get(word, word))


def _complex(tokens: _Tokens, word: str, depth: int) -> DataType:
    if word == "struct":
        type_: DataType = Struct(_fields(tokens, depth + 1, end=">"))
    elif word == "array":
        type_ = Array(_type(tokens, depth + 1))
    else:
        key = _type(tokens, depth + 1)
        tokens.expect(",")
        type_ = Map(key, _type(tokens, depth + 1))
    tokens.expect(">")
    return type_


def _fields(tokens: _Tokens, depth: int, end: str) -> tuple[Field, ...]:
    if tokens.peek().text == end and tokens.peek().kind in {"mark", "end"}:
        return ()
    fields = [_field(tokens, depth)]
    while tokens.skip(","):
        fields.append(_field(tokens, depth))
    return tuple(fields)


def _field(tokens: _Tokens, depth: int) -> Field:
    name = tokens.take()
    if name.kind not in {"word", "quoted"} or not name.text:
        tokens.fail(name, "the name of a column")
    tokens.skip(":")
    type_ = _type(tokens, depth)
    nullable = not tokens.skip("not", "null")
    metadata = _comment(tokens) if tokens.skip("comment") else NO_METADATA
    return Field(name.text.replace("``", "`") if name.kind == "quoted" else name.text, type_, nullable, metadata)


def _comment(tokens: _Tokens) -> str:
    literal = tokens.take()
    if literal.kind != "string":
        tokens.fail(literal, "a comment in quotes")
    return dumps({COMMENT: unescape(literal.text)})


def _atom(tokens: _Tokens, token: Token, word: str) -> DataType:
    arguments = _arguments(tokens) if tokens.skip("(") else None
    if word == "interval" and arguments is None:
        return _interval(tokens)
    if word == "string" and arguments is None:
        return collated_string(_collation(tokens)) if tokens.skip("collate") else SIMPLE_BY_SQL["string"]
    if arguments is None and word in SIMPLE_BY_SQL:
        return SIMPLE_BY_SQL[word]
    numbers = _DEFAULT_ARGUMENTS.get(word) if arguments is None else _numbers(arguments)
    known = None if numbers is None else parametrised(word, numbers)
    if known is not None:
        return known
    if word in {"array", "map", "struct", "decimal", "char", "varchar", "time", *SIMPLE_BY_SQL}:
        tokens.fail(token, f"{word} as Spark has it")
    return Opaque(dumps(word if arguments is None else f"{word}({', '.join(arguments)})"))


def _interval(tokens: _Tokens) -> DataType:
    if tokens.peek().text.lower() not in _UNITS:
        return SIMPLE_BY_SQL["interval"]
    token = tokens.take()
    name = f"interval {token.text.lower()}"
    if tokens.skip("to"):
        name = f"{name} to {tokens.take().text.lower()}"
    if name not in SIMPLE_BY_SQL:
        tokens.fail(token, "an interval that Spark has")
    return SIMPLE_BY_SQL[name]


def _collation(tokens: _Tokens) -> str:
    token = tokens.take()
    if token.kind != "word":
        tokens.fail(token, "the name of a collation")
    return token.text


def _arguments(tokens: _Tokens) -> list[str]:
    """What stands in the brackets, up to the closing one: `OGC:CRS84, SPHERICAL` is two arguments."""
    arguments = [""]
    while not tokens.skip(")"):
        token = tokens.take()
        if token.kind not in {"word", "mark"} or token.text in {"(", "<", ">"}:
            tokens.fail(token, "')'")
        if token.text == ",":
            arguments.append("")
        else:
            arguments[-1] += token.text
    return arguments


def _numbers(arguments: list[str]) -> list[int] | None:
    is_number = re.compile(r"-?\d{1,9}")
    return [int(argument) for argument in arguments] if all(map(is_number.fullmatch, arguments)) else None
