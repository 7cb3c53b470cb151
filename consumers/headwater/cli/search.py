"""`headwater search`: what has a text in its name, number or id."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING

from headwater.cli.answers import give, open_connection
from headwater.cli.commands import command
from headwater.cli.exits import Exit
from headwater.cli.flags import Flags, limit, one_of
from headwater.cli.output import CommandOutput
from headwater.cli.store import add_store

if TYPE_CHECKING:
    from headwater.lineage.questions.search import FoundThing

_KINDS = ("table", "job", "column", "run", "snapshot")


def _text(parser: Flags) -> None:
    parser.word("text", str, "a part of a name, the whole number of a snapshot, or the id of a run", "TEXT")
    parser.flags("kind", one_of(_KINDS, "kind"), f"only of this kind: {', '.join(_KINDS)}", "KIND")


@command(
    "Find tables, jobs, columns, runs and snapshots. Upper and lower case are the same.",
    "headwater search top10",
    "headwater search price --kind column",
    "headwater search 8142372498271837498",
    flags=[add_store, _text, limit(50)],
)
def search(given: Namespace, output: CommandOutput) -> int:
    from headwater.lineage.questions.search import FoundKind  # noqa: PLC0415
    from headwater.lineage.questions.search import search as question  # noqa: PLC0415

    kinds = [FoundKind(kind.upper()) for kind in given.kind or _KINDS]
    with open_connection(given) as connection:
        answer = question(connection, given.text, kinds=kinds, at_most=given.limit)
    given.limit = max(given.limit, len(answer))  # it is the limit of each kind
    give(given, output, "found", answer, columns=("kind", "name", "detail", "last"), row=_row)
    return Exit.DONE


def _row(each: FoundThing) -> tuple[object, ...]:
    return (each.kind.value.lower(), each.name, each.detail, each.last)
