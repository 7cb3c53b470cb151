"""Types for tests, written short: `type_of("struct<a: int>")`, `type_of("a INT NOT NULL COMMENT 'x', b STRING")`."""

from __future__ import annotations

import json
import re

from headwater.events.types import ArrayType, DataType, MapType, StructField, StructType
from headwater.events.types.atoms import atom

_TOKEN = re.compile(r"\s*(`[^`]*`|'[^']*'|\w+(?:\([\d, ]*\))?|[<>:,])")
_NAMES = {"tinyint": "byte", "smallint": "short", "int": "integer", "bigint": "long", "real": "float"}


def type_of(text: str) -> DataType:
    """The type, or a struct of the columns. Knows what tests write; anything else fails in one way or another."""
    tokens = _TOKEN.findall(text)[::-1]
    has_columns = len(tokens) > 1 and tokens[-2] not in {"<", "collate"}
    type_ = StructType(_fields(tokens)) if has_columns else _type(tokens)
    assert not tokens, f"left of {text!r}: {tokens[::-1]}"
    return type_


def _type(tokens: list[str]) -> DataType:
    word = tokens.pop().lower()
    if tokens and tokens[-1] == "<":
        return _nested(word, tokens)
    if tokens and tokens[-1] == "collate":
        word = f"{word} {tokens.pop()} {tokens.pop()}"
    found = atom(_NAMES.get(word, word))
    assert found is not None, f"no type: {word}"
    return found


def _nested(word: str, tokens: list[str]) -> DataType:
    tokens.pop()
    if word == "struct":
        type_: DataType = StructType(_fields(tokens))
    elif word == "array":
        type_ = ArrayType(_type(tokens))
    else:
        key = _type(tokens)
        assert (word, tokens.pop()) == ("map", ",")
        type_ = MapType(key, _type(tokens))
    assert tokens.pop() == ">"
    return type_


def _fields(tokens: list[str]) -> tuple[StructField, ...]:
    fields = []
    while tokens and tokens[-1] != ">":
        name = tokens.pop().strip("`")
        _skip(tokens, ":")
        type_ = _type(tokens)
        nullable = not _skip(tokens, "not", "null")
        metadata = (
            json.dumps({"comment": tokens.pop()[1:-1]}, separators=(",", ":")) if _skip(tokens, "comment") else "{}"
        )
        fields.append(StructField(name, type_, nullable, metadata))
        _skip(tokens, ",")
    return tuple(fields)


def _skip(tokens: list[str], *words: str) -> bool:
    found = [token.lower() for token in tokens[: -len(words) - 1 : -1]] == list(words)
    if found:
        del tokens[-len(words) :]
    return found
