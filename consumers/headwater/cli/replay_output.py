"""What `headwater replay` prints: progress on standard error, differences and the outcome as its answer."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, TextIO

from headwater.cli.exits import Exit
from headwater.cli.output import Age, CommandOutput, span_text
from headwater.errors import ConfigurationError

if TYPE_CHECKING:
    from headwater.consumers.replay.progress import PhaseProgress
    from headwater.consumers.replay.replay import ReplayResult
    from headwater.lineage.replacement.comparison import RowDifference, StoreComparison

_LINE_SECONDS: Final = 10.0
"""How often a line is written where there is no terminal."""
_LONGEST: Final = 60
_CLEAR: Final = "\r\x1b[K"


class ProgressLines:
    """One line that changes on a terminal; elsewhere lines from time to time, of text or of JSON."""

    def __init__(self, output: str, err: TextIO) -> None:
        """`output` is the form of the command's answer."""
        self._as_json = output == "json"
        self._err = err
        self._is_terminal = err.isatty() and not self._as_json
        self._next = 0.0

    def show(self, progress: PhaseProgress) -> None:
        if not progress.total:
            return
        if self._is_terminal:
            end = "\n" if progress.is_finished else ""
            self._err.write(f"{_CLEAR}{_words(progress)}{end}")
            self._err.flush()
        elif progress.is_finished or time.monotonic() >= self._next:
            self._next = time.monotonic() + _LINE_SECONDS
            print(json.dumps(_fields(progress)) if self._as_json else _words(progress), file=self._err, flush=True)


def _words(progress: PhaseProgress) -> str:
    left = progress.seconds_left
    text = f"{progress.phase}: {progress.done:,} of {progress.total:,} {progress.unit}, {progress.rate:,.0f} a second"
    if progress.is_finished:
        return f"{text}, {span_text(timedelta(seconds=progress.seconds))}"
    return text if left is None else f"{text}, {span_text(timedelta(seconds=left))} left"


def _fields(progress: PhaseProgress) -> dict[str, object]:
    left = progress.seconds_left
    return {
        "phase": progress.phase,
        "unit": progress.unit,
        "done": progress.done,
        "total": progress.total,
        "per_second": round(progress.rate, 1),
        "seconds_left": None if left is None else round(left, 1),
        "finished": progress.is_finished,
    }


def is_agreed(given: Any, output: CommandOutput, result: ReplayResult) -> bool:
    """Show what differs, and ask whether to switch over all the same."""
    if given.yes:
        return True
    question = "rows differ: put the rebuilt tables in the place of the live ones?"
    if not sys.stdin.isatty():
        give_comparison(output, result.comparison, given.differences)
        raise ConfigurationError(
            f"{question} There is no terminal to ask at: run it again with --yes, which goes on from here, or --abort"
        )
    print(f"{result.comparison and result.comparison.differing} {question} [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in {"y", "yes"}


def give_result(given: Any, output: CommandOutput, result: ReplayResult) -> Exit:
    """Give the comparison and the outcome. Exit code 1 where rows differ and nothing was switched."""
    give_comparison(output, result.comparison, given.differences)
    output.table(
        "missing events",
        ("producer", "family", "events", "first", "last"),
        [(str(each.producer), each.family, each.events, each.first, each.last) for each in result.missing],
        "Events that the live store had and no source has",
    )
    differing = 0 if result.comparison is None else result.comparison.differing
    fields = {
        "events": result.events,
        "rows copied": result.copied_rows,
        "rows that differ": differing,
        "switched": result.is_switched,
        "writers waited": Age(round(result.pause, 3)) if result.is_switched else None,
    }
    output.record("replay", fields)
    return Exit.FAILED if (differing or result.missing) and not result.is_switched else Exit.DONE


def give_comparison(output: CommandOutput, comparison: StoreComparison | None, most: int) -> None:
    if comparison is None:
        return
    columns = ("table", "live rows", "fresh rows", "differing", "live digest", "fresh digest")
    rows = [
        (each.table, each.live_rows, each.fresh_rows, each.differing, each.live_digest, each.fresh_digest)
        for each in comparison.tables
    ]
    output.table("tables", columns, rows, "Live and rebuilt tables")
    if comparison.live_behind:
        behind = f"the live store hadn't read {comparison.live_behind} events that the rebuilt one has"
        output.note(f"{behind}: what only the latter has isn't listed")
    if comparison.skipped:
        output.note(f"not compared, because their columns are others: {', '.join(comparison.skipped)}")
    shown = [_difference(each) for each in comparison.differences[:most]]
    output.table("differences", ("table", "is", "key", "columns"), shown, "Rows that differ")
    if comparison.differing > len(shown):
        output.note(f"these are {len(shown)} of {comparison.differing}; --differences shows more")


def _difference(difference: RowDifference) -> tuple[str, str, str, str]:
    row = difference.live or difference.fresh
    assert row is not None  # noqa: S101 - one side has it
    names = (field.name for field in row.kind.key)
    key = ", ".join(f"{name}={_shown(value)}" for name, value in zip(names, row.key, strict=True) if value is not None)
    return (difference.kind.name, difference.side.value, key, ", ".join(_changes(difference)))


def _changes(difference: RowDifference) -> Iterator[str]:
    live, fresh = difference.live, difference.fresh
    if live is None or fresh is None:
        return
    mine, other = live.as_dict | live.times._asdict(), fresh.as_dict | fresh.times._asdict()
    for name in difference.columns:
        if name in mine:
            yield f"{name}: {_shown(mine[name])} / {_shown(other[name])}"
        else:
            yield name


def _shown(value: object) -> str:
    text = value.hex() if isinstance(value, bytes) else str(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
