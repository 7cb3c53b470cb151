"""`headwater late`, `headwater history`, `headwater names`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from headwater.cli.asking.giving import asked, flags_of, give, moment, output_of, plain
from headwater.cli.output import Output

if TYPE_CHECKING:
    from headwater.lineage.questions.history import ColumnChange, Modified
    from headwater.lineage.questions.late import Hop

_TABLE = "catalog.database.table, database.table, a path or a URI"


def late(arguments: Sequence[str], output: Output) -> int:
    """Why a table is late: all that it is made from, who wrote that last and when. Of all upstream the oldest is
    marked, and what stands for more than twice as long as it usually does is overdue."""
    from headwater.lineage.questions.late import late as question  # noqa: PLC0415

    parser = flags_of("late", str(late.__doc__))
    parser.add_argument("table", help=_TABLE)
    given = parser.parse_args(arguments)
    with asked(given) as connection:
        answer = question(connection, given.table)
    columns = ("table", "age", "usual", "", "job", "status", "snapshot", "barrier", "committed", "error")
    answer = replace(answer, rows=tuple(under_what_they_feed(answer.rows)))
    return give(output_of(given, output), f"What {given.table} waits for", columns, answer, _hop)


def under_what_they_feed(hops: Sequence[Hop]) -> Iterator[Hop]:
    """Each table once, in the depth of its shortest way, behind one that is made from it: only so depth can be shown as
    an indent, which is read as "of the line above"."""
    below: dict[str | None, list[Hop]] = {}
    for hop in hops:
        nearer = [each.table for each in hops if each.depth == hop.depth - 1 and each.table in hop.feeds]
        below.setdefault(nearer[0] if nearer else None, []).append(hop)
    waiting = below.pop(None, [])[::-1]
    while waiting:
        yield (hop := waiting.pop())
        waiting += below.pop(hop.table, [])[::-1]


def _hop(hop: Hop) -> Sequence[object]:
    marks = [word for word, is_so in (("OLDEST", hop.is_oldest), ("overdue", hop.is_overdue)) if is_so]
    table = f"{'  ' * hop.depth}{hop.table}"
    return (
        *(table, hop.age, hop.usual, marks, hop.job, _status(hop)),
        *(hop.snapshot if hop.version is None else hop.version, hop.barrier, hop.at, hop.error),
    )


def _status(hop: Hop) -> str | None:
    if hop.status is None or hop.status.is_terminal:
        return None if hop.status is None else hop.status.value
    return "RUNNING" if hop.alive else "SILENT"


def history(arguments: Sequence[str], output: Output) -> int:
    """What was done to a table, in its format's own order; with A..B what changed of its columns from A to B."""
    from headwater.lineage.questions.history import history as question  # noqa: PLC0415
    from headwater.lineage.questions.history import schema_changes  # noqa: PLC0415

    parser = flags_of("history", str(history.__doc__))
    parser.flag("since", moment, None, "only what was done since", "TIME")
    parser.flag("until", moment, None, "only what was done until", "TIME")
    parser.add_argument("table", help=_TABLE)
    parser.add_argument("snapshots", nargs="?", type=_range, metavar="A..B", help="two snapshots")
    given = parser.parse_args(arguments)
    output = output_of(given, output)
    with asked(given) as connection:
        if given.snapshots is None:
            columns = ("at", "what", "changes", "schema", "made snapshot", "branch", "life", "note")
            answer = question(connection, given.table, since=given.since, until=given.until)
            return give(output, f"History of {given.table}", columns, answer, _modified)
        one, other = given.snapshots
        changes = schema_changes(connection, given.table, one, other)
    title = f"Columns of {given.table} from {one} to {other}"
    return give(output, title, ("column", "what", "before", "after"), changes, _changed)


def _changed(change: ColumnChange) -> Sequence[object]:
    return (change.column, change.did.value, change.before, change.after)


def _modified(each: Modified) -> Sequence[object]:
    notes = [] if each.is_known else ["may have done nothing"]
    notes += ["by a write"] if each.cause == "WRITE" else []
    changes = "; ".join(each.changes) or None
    return (each.at, each.kind, changes, each.schema_id, each.produced, each.branch, each.life, notes)


def _range(text: str) -> tuple[int, int]:
    found = re.fullmatch(r"(-?\d+)\.\.(-?\d+)", text.strip())
    if found is None:
        raise ValueError(f"{text!r} is no range of snapshots: write A..B, 3..7 say")
    return int(found[1]), int(found[2])


def names(arguments: Sequence[str], output: Output) -> int:
    """What a table was called and when, and its lives: how often it was dropped and made anew."""
    from headwater.lineage.questions.lives import aliases, lives  # noqa: PLC0415

    parser = flags_of("names", str(names.__doc__))
    parser.add_argument("table", help=_TABLE)
    given = parser.parse_args(arguments)
    output = output_of(given, output)
    with asked(given) as connection:
        called, lived = aliases(connection, given.table), lives(connection, given.table)
    output.table(
        f"Lives of {given.table}",
        ("life", "format", "place", "first", "last", "ended"),
        [tuple(map(plain, (each.life, each.format, each.place, each.first, each.last, each.ended))) for each in lived],
    )
    return give(
        output,
        f"Names of {given.table}",
        ("name", "place", "first", "last", "ended"),
        called,
        lambda each: (each.name, each.place, each.first, each.last, each.ended),
    )
