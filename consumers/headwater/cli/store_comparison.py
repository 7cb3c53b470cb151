"""`headwater store compare`: whether two stores have the same rows, and which rows differ."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from headwater.cli.commands import command
from headwater.cli.exits import Exit
from headwater.cli.flags import Flags, whole_number
from headwater.cli.output import CommandOutput
from headwater.cli.replay_output import ProgressLines
from headwater.cli.store import add_store, options_of
from headwater.errors import ConfigurationError

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from headwater.lineage.replacement.comparison import RowDifference, StoreComparison
    from headwater.lineage.store import StoreOptions

_LONGEST: Final = 60
_BESIDE: Final = ("fresh", "former")
"""What a replay leaves beside a store."""


def _flags(parser: Flags) -> None:
    text = "the other store: its URL, or fresh and former for the tables that a replay fills and replaced"
    parser.flag("with", str, None, text, "URL")
    parser.flag("differences", whole_number, "20", "show at most so many rows that differ", "N")


@command(
    """Compare two stores row by row. Writers and readers go on.

Where one store has read events that the other one hasn't, rows that differ because of them aren't told. Exit code 0 if
no other row differs, 1 if one does.""",
    "headwater store compare --store postgresql://owner@db/lineage --with fresh",
    "headwater store compare --store postgresql://owner@db/lineage --with former",
    "headwater store compare --store lineage.db --with postgresql://owner@db/lineage -o json",
    flags=[add_store, _flags],
)
def compare(given: Namespace, output: CommandOutput) -> int:
    from headwater.consumers.replay.filling import PhaseProgress  # noqa: PLC0415
    from headwater.lineage.replacement.areas import count_rows  # noqa: PLC0415
    from headwater.lineage.replacement.comparison import compare_stores  # noqa: PLC0415

    lines = ProgressLines(given.output, sys.stderr)
    with _read(options_of(given)) as one, _read(_other(given)) as other:
        progress = PhaseProgress("comparing", "rows", count_rows(one))

        def report(done: int) -> None:
            progress.done = done
            lines.show(progress)

        found = compare_stores(one, other, given.differences, report)
    _give(output, found)
    return Exit.FAILED if found.differing else Exit.DONE


def _other(given: Any) -> StoreOptions:
    name = getattr(given, "with")
    if name is None:
        raise ConfigurationError("with which store? Name it by --with URL, --with fresh or --with former")
    if name not in _BESIDE:
        from headwater.lineage.store import StoreOptions  # noqa: PLC0415

        return StoreOptions.from_environment(os.environ, name)
    from headwater.lineage.replacement.areas import Area, has_area  # noqa: PLC0415

    options, area = options_of(given), Area[name.upper()]
    if not has_area(options, area):
        raise ConfigurationError(f"beside the store in {options.target.words} are no {name} tables of a replay")
    return options.beside(area.value)


@contextmanager
def _read(options: StoreOptions) -> Generator[Connection]:
    """Connect to a store, whatever its version. The connection sees it as it is at its first question."""
    from headwater.lineage.sql.errors import translate_errors  # noqa: PLC0415
    from headwater.lineage.store.engines import open_engine  # noqa: PLC0415
    from headwater.lineage.store.engines.sqlite import prepare_file  # noqa: PLC0415

    target = options.target
    prepare_file(target, readonly=True, create=False)
    with open_engine(target, readonly=True) as engine, translate_errors(target.words), engine.connect() as connection:
        yield connection


def _give(output: CommandOutput, found: StoreComparison) -> None:
    columns = ("table", "rows", "other rows", "differing", "digest", "other digest")
    rows = [(table.table, *table.rows, table.differing, *table.digests) for table in found.tables]
    output.table("tables", columns, rows, "Tables of both stores")
    for name, unread in zip(("the store", "the other store"), found.unread, strict=True):
        if unread:
            output.note(f"{name} hasn't read {unread} events that the other one has")
    if found.explained:
        output.note(f"{found.explained} rows that differ because of such events aren't listed")
    if found.skipped:
        output.note(f"not compared, because their columns are others: {', '.join(found.skipped)}")
    shown = [_difference(difference) for difference in found.differences]
    output.table("differences", ("table", "is", "key", "columns"), shown, "Rows that differ")
    if found.differing > len(shown):
        output.note(f"these are {len(shown)} of {found.differing}; --differences shows more")


def _difference(difference: RowDifference) -> tuple[str, str, str, str]:
    row = difference.one or difference.other
    assert row is not None  # noqa: S101 - one side has it
    names = (field.name for field in row.kind.key)
    key = ", ".join(
        f"{name}={_shorten(value)}" for name, value in zip(names, row.key, strict=True) if value is not None
    )
    return (difference.kind.name, difference.side, key, ", ".join(_changes(difference)))


def _changes(difference: RowDifference) -> Iterator[str]:
    one, other = difference.one, difference.other
    if one is None or other is None:
        return
    mine, theirs = one.as_dict | one.times._asdict(), other.as_dict | other.times._asdict()
    for name in difference.columns:
        yield f"{name}: {_shorten(mine[name])} / {_shorten(theirs[name])}" if name in mine else name


def _shorten(value: object) -> str:
    text = value.hex() if isinstance(value, bytes) else str(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
