"""How a command gives its answer: to a CommandOutput, which prints text or JSON as `--output` says.

Text is for people. JSON is for programs: one document for each answer on standard output, whose keys stay the same;
what is said beside the answer, and errors, go to standard error.
"""

from __future__ import annotations

import json
import re
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta, timezone
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, Protocol, TextIO

from headwater.terminal import printable, printable_json, printable_lines

if TYPE_CHECKING:  # not for commands that examine nothing
    from headwater.spi import CheckResult

WIDTH: Final = 100
"""Columns of a terminal that text has room for."""
_ERROR_LINES: Final = 4
_KIB: Final = 1024
_MINUTE, _HOUR, _DAY = 60, 3600, 86400


class CommandOutput(Protocol):
    """Where a command puts its answer. Names of records, tables and columns become keys in JSON."""

    def note(self, text: str) -> None:
        """Say something to people only: an explanation, progress."""

    def outcome(self, text: str, fields: Mapping[str, object]) -> None:
        """Say in a sentence what was done; programs get the fields instead."""

    def record(self, name: str, fields: Mapping[str, object], title: str = "") -> None:
        """Give one thing with named fields; people see the title, or the name."""

    def table(self, name: str, columns: Sequence[str], rows: Iterable[Sequence[object]], title: str = "") -> None:
        """Give many things of one kind; every row has a value for every column."""

    def findings(self, chapter: str, findings: Iterable[CheckResult]) -> Iterator[CheckResult]:
        """Give what an examination finds, and yield each finding."""
        ...

    def answer(self, text: str) -> None:
        """Give an answer that is written already, in the form that was asked for."""

    def error(self, error: BaseException) -> None:
        """Tell on standard error why the command failed."""

    def finish(self, *, has_failed: bool = False) -> None:
        """End the answer: what was given is printed now, if it wasn't yet. What comes later is no part of it."""


class TextOutput:
    """For people: aligned columns, None as a dash."""

    def __init__(self, out: TextIO | None = None, err: TextIO | None = None) -> None:
        self._out = out or sys.stdout
        self._err = err or sys.stderr

    def note(self, text: str) -> None:
        self._print(text)

    def outcome(self, text: str, fields: Mapping[str, object]) -> None:  # noqa: ARG002 - the sentence has it all
        self._print(text)

    def record(self, name: str, fields: Mapping[str, object], title: str = "") -> None:
        width = max(map(len, fields), default=0)
        self._print(printable(title or _title(name)))
        for field, value in fields.items():
            self._print(f"  {field:<{width}}  {shown(value)}")

    def table(self, name: str, columns: Sequence[str], rows: Iterable[Sequence[object]], title: str = "") -> None:
        values = [tuple(row) for row in rows]
        if not values:
            self._print(f"{printable(title or _title(name))}\n  none")
            return
        cells = [tuple(columns), *(tuple(map(shown, row)) for row in values)]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        numeric = [_is_numeric(column) for column in zip(*values, strict=True)]
        self._print(printable(title or _title(name)))
        for row in cells:
            aligned = [f"{c:>{w}}" if n else f"{c:<{w}}" for c, w, n in zip(row, widths, numeric, strict=True)]
            self._print(f"  {'  '.join(aligned)}".rstrip())

    def findings(self, chapter: str, findings: Iterable[CheckResult]) -> Iterator[CheckResult]:
        self._print(chapter)
        for finding in findings:
            self._print(_laid_out(finding))
            self._out.flush()
            yield finding

    def answer(self, text: str) -> None:
        self._out.write(printable_lines(text))

    def error(self, error: BaseException) -> None:
        self._out.flush()
        words = str(error).replace("\n", "\n  ")  # so that no name of others can begin a line
        print_words(f"headwater: {words}", self._err)

    def finish(self, *, has_failed: bool = False) -> None:  # noqa: ARG002 - all of it is printed
        self._out.flush()

    def _print(self, text: str) -> None:
        print_words(text, self._out)


class JsonOutput:
    """For programs: one JSON document on standard output, when the answer is whole."""

    def __init__(self, out: TextIO | None = None, err: TextIO | None = None) -> None:
        self._out = out or sys.stdout
        self._err = err or sys.stderr
        self._document: dict[str, Any] = {}
        self._is_finished = False

    def note(self, text: str) -> None:
        print_words(text, self._err)

    def outcome(self, text: str, fields: Mapping[str, object]) -> None:
        self.note(text)
        self._document.update(_object(fields))

    def record(self, name: str, fields: Mapping[str, object], title: str = "") -> None:  # noqa: ARG002 - for people
        self._document[key_of(name)] = _object(fields)

    def table(self, name: str, columns: Sequence[str], rows: Iterable[Sequence[object]], title: str = "") -> None:  # noqa: ARG002
        self._document[key_of(name)] = [_object(dict(zip(columns, row, strict=True))) for row in rows]

    def findings(self, chapter: str, findings: Iterable[CheckResult]) -> Iterator[CheckResult]:
        written = self._document.setdefault("findings", [])
        for finding in findings:
            fields = {
                "step": finding.step,
                "status": finding.status.value,
                "message": finding.message,
                "advice": finding.advice or None,
            }
            written.append({"chapter": chapter, **fields})
            yield finding

    def answer(self, text: str) -> None:
        self._out.write(printable_lines(text))
        self._is_finished = True

    def error(self, error: BaseException) -> None:
        print(json.dumps({"error": type(error).__name__, "message": str(error)}), file=self._err)

    def finish(self, *, has_failed: bool = False) -> None:
        if self._is_finished or (has_failed and not self._document):
            return
        self._is_finished = True
        print(printable_json(self._document), file=self._out, flush=True)


class Size(int):
    """A number of bytes, as people read it; in JSON it is the number."""

    def __str__(self) -> str:
        size, unit = float(self), "B"
        for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
            if size < _KIB or unit == "TiB":
                break
            size /= _KIB
        return f"{int(self)} B" if unit == "B" else f"{size:.1f} {unit}"


class Age(float):
    """A number of seconds, as people read it; in JSON it is the number."""

    def __str__(self) -> str:
        for length, unit in ((_DAY, "d"), (_HOUR, "h"), (_MINUTE, "min")):
            if self >= 2 * length:
                return f"{int(self // length)} {unit}"
        return f"{float(self):.1f} s"


def age_of(moment: datetime | None) -> Age | None:
    """Return how long ago that was; never less than nothing, whatever a clock says."""
    if moment is None:
        return None
    return Age(round(max(0.0, (datetime.now(timezone.utc) - moment).total_seconds()), 3))


def shown(value: object) -> str:
    """Return a value as people read it, on one line."""
    if value is None or value is False or value == ():
        return "-"
    if isinstance(value, datetime):
        return value.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    if isinstance(value, timedelta):
        return span_text(value)
    if isinstance(value, (list, tuple)):
        return ", ".join(map(shown, value)) or "-"
    return "yes" if value is True else printable(str(value.value if isinstance(value, Enum) else value))


def error_text(words: str) -> str:
    """Return an error on a few lines that a terminal has room for. Programs get all of it."""
    rest = " … (-o json shows all of it)"
    return textwrap.fill(
        words, WIDTH, initial_indent="  ", subsequent_indent="    ", max_lines=_ERROR_LINES, placeholder=rest
    )


def span_text(span: timedelta) -> str:
    """Return a span by its two greatest units: 3 d 4 h, 2 min 5 s."""
    seconds = int(span.total_seconds())
    parts = [(seconds // 86400, "d"), (seconds // 3600 % 24, "h"), (seconds // 60 % 60, "min"), (seconds % 60, "s")]
    first = next((place for place, (number, _) in enumerate(parts) if number), len(parts) - 1)
    return " ".join(f"{number} {unit}" for number, unit in parts[first : first + 2] if number or unit == "s")


def key_of(name: str) -> str:
    """Return a name as a key of JSON: `last run` is `last_run`; variables of the environment keep theirs."""
    return name if name.isupper() else re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")


def _object(fields: Mapping[str, object]) -> dict[str, object]:
    return {key_of(name): _json_value(value) for name, value in fields.items()}


def _json_value(value: object) -> object:
    """Return what JSON has for it: times in ISO 8601, spans in seconds, other things as text."""
    if isinstance(value, Enum):
        return value.value
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, datetime):
        return value.astimezone(timezone.utc).isoformat().replace("+00:00", "Z")
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, Mapping):
        return _object(value)
    return [_json_value(each) for each in value] if isinstance(value, (list, tuple)) else str(value)


def print_words(text: str, out: TextIO) -> None:
    """Print whole lines for people. Whatever a command prints as text goes through here."""
    print(printable_lines(text), file=out)


OUTPUTS: Mapping[str, type[TextOutput | JsonOutput]] = {"text": TextOutput, "json": JsonOutput}


def _title(name: str) -> str:
    return f"{name[:1].upper()}{name[1:]}"


def _is_numeric(column: Iterable[object]) -> bool:
    return all(isinstance(value, int | float) and value is not True for value in column if value is not None)


def _laid_out(finding: CheckResult) -> str:
    """State and step, the words beside them, and below them what to do: on one line, so that it can be copied."""
    head, indent = f"  {finding.status.value:<9} {finding.step:<14} ", " " * 27
    text = head + printable(finding.message)
    lines = textwrap.wrap(text, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
    return "\n".join([*lines, *([f"{indent}-> {printable(finding.advice)}"] if finding.advice else [])])
