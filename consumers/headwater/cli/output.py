"""What a command says, apart from how it looks: a command speaks to an Output, and `--output` chooses which."""

from __future__ import annotations

import json
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Protocol, TextIO

if TYPE_CHECKING:  # not for commands that examine nothing
    from headwater.spi import Finding

_WIDTH: Final = 100


class Output(Protocol):
    """Where a command puts its results. Data goes to standard output; notes never mix with data meant for machines."""

    def note(self, text: str) -> None:
        """Say something to people only: an explanation, progress."""

    def record(self, title: str, fields: Mapping[str, object]) -> None:
        """Give one thing with named fields."""

    def table(self, title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        """Give many things of one kind; every row has a value for every column."""

    def findings(self, title: str, findings: Iterable[Finding]) -> Iterator[Finding]:
        """Give what an examination finds, each as it is found; what was given is yielded."""
        ...

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
        if not values:
            print(f"{title}\n  none", file=self._out)
            return
        cells = [tuple(columns), *(tuple(map(_shown, row)) for row in values)]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        numeric = [_is_numeric(column) for column in zip(*values, strict=True)]
        print(title, file=self._out)
        for row in cells:
            aligned = [f"{c:>{w}}" if n else f"{c:<{w}}" for c, w, n in zip(row, widths, numeric, strict=True)]
            print(f"  {'  '.join(aligned)}".rstrip(), file=self._out)

    def findings(self, title: str, findings: Iterable[Finding]) -> Iterator[Finding]:
        print(title, file=self._out)
        for each in findings:
            print(_laid_out(each), file=self._out, flush=True)
            yield each

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

    def findings(self, title: str, findings: Iterable[Finding]) -> Iterator[Finding]:
        for each in findings:
            fields = {"step": each.step, "state": each.state.value, "words": each.words, "advice": each.advice or None}
            self._give({"title": title, "finding": fields})
            yield each

    def error(self, error: BaseException) -> None:
        print(json.dumps({"error": type(error).__name__, "message": str(error)}), file=self._err)

    def _give(self, document: Mapping[str, object]) -> None:
        print(json.dumps(document, default=str, ensure_ascii=False), file=self._out)


OUTPUTS: Mapping[str, type[TextOutput | JsonOutput]] = {"text": TextOutput, "json": JsonOutput}


def _shown(value: object) -> str:
    return "-" if value is None else str(value)


def _is_numeric(column: Iterable[object]) -> bool:
    return all(isinstance(value, int | float) for value in column if value is not None)


def _laid_out(finding: Finding) -> str:
    """State and step, the words beside them, and below them what to do: on one line, so that it can be copied."""
    head, indent = f"  {finding.state.value:<9} {finding.step:<14} ", " " * 27
    lines = textwrap.wrap(
        head + finding.words, _WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
    return "\n".join([*lines, *([f"{indent}-> {finding.advice}"] if finding.advice else [])])
