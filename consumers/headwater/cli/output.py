"""What a command says, apart from how it looks: a command speaks to an Output, and `--output` chooses which."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol, TextIO


class Output(Protocol):
    """Where a command puts its results. Data goes to standard output; notes never mix with data meant for machines."""

    def note(self, text: str) -> None:
        """Say something to people only: an explanation, progress."""

    def record(self, title: str, fields: Mapping[str, object]) -> None:
        """Give one thing with named fields."""

    def table(self, title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        """Give many things of one kind; every row has a value for every column."""

    def error(self, error: BaseException) -> None:
        """Tell why the command failed, on standard error."""


class TextOutput:
    """For people: aligned columns, None as a dash."""

    def __init__(self, out: TextIO | None = None, err: TextIO | None = None) -> None:
        self._out = out or sys.stdout
        self._err = err or sys.stderr

    def note(self, text: str) -> None:
        print(text, file=self._out)

    def record(self, title: str, fields: Mapping[str, object]) -> None:
        width = max(map(len, fields), default=0)
        print(title, file=self._out)
        for name, value in fields.items():
            print(f"  {name:<{width}}  {_shown(value)}", file=self._out)

    def table(self, title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        values = [tuple(row) for row in rows]
        cells = [tuple(columns), *(tuple(map(_shown, row)) for row in values)]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        numeric = [_is_numeric(column) for column in zip(*values, strict=True)] or [False] * len(columns)
        print(title, file=self._out)
        for row in cells:
            aligned = [f"{c:>{w}}" if n else f"{c:<{w}}" for c, w, n in zip(row, widths, numeric, strict=True)]
            print(f"  {'  '.join(aligned)}".rstrip(), file=self._out)

    def error(self, error: BaseException) -> None:
        print(f"headwater: {error}", file=self._err)


class JsonOutput:
    """For programs: one JSON document per line on standard output; notes and errors on standard error."""

    def __init__(self, out: TextIO | None = None, err: TextIO | None = None) -> None:
        self._out = out or sys.stdout
        self._err = err or sys.stderr

    def note(self, text: str) -> None:
        print(text, file=self._err)

    def record(self, title: str, fields: Mapping[str, object]) -> None:
        self._give({"title": title, "record": dict(fields)})

    def table(self, title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        self._give({"title": title, "rows": [dict(zip(columns, row, strict=True)) for row in rows]})

    def error(self, error: BaseException) -> None:
        print(json.dumps({"error": type(error).__name__, "message": str(error)}), file=self._err)

    def _give(self, document: Mapping[str, object]) -> None:
        print(json.dumps(document, default=str, ensure_ascii=False), file=self._out)


OUTPUTS: Mapping[str, type[TextOutput | JsonOutput]] = {"text": TextOutput, "json": JsonOutput}


def _shown(value: object) -> str:
    return "-" if value is None else str(value)


def _is_numeric(column: Iterable[object]) -> bool:
    return all(isinstance(value, int | float) for value in column if value is not None)
