"""`headwater stream fork`: a checkpoint from which a streaming query goes on behind one of its batches."""

from __future__ import annotations

import re
from argparse import Namespace
from typing import TYPE_CHECKING, Final

from headwater.cli.commands import command
from headwater.cli.exits import Exit
from headwater.cli.flags import Flags, is_number
from headwater.cli.output import CommandOutput, Size

if TYPE_CHECKING:
    from headwater.versions.forks import ForkPlan, SourceMove

_VERSION: Final = re.compile(r"(.+)@(\d+)")
_DESCRIPTION: Final = """Make a new checkpoint from which a streaming query goes on behind one of its batches.

It holds the offsets, the commits and the state of a checkpoint up to that batch, and nothing of later ones. The query
has a new id there, so that sinks don't take its batches for those that the old query has written. With --map a source
goes on from another table: a clone in which data was corrected. Nothing is changed in the old checkpoint, whose query
may run.

OLD is the directory of a table of Delta or Iceberg that the query reads, NEW that of the table that it is to read. A
clone of Delta begins with what the query had read; of another table say which VERSION or snapshot holds that."""


def _arguments(parser: Flags) -> None:
    parser.word("checkpoint", str, "the directory that the query has as checkpointLocation", "CHECKPOINT")
    parser.flag("at-batch", _batch, None, "the last batch that the fork has; it goes on with the next", "N")
    parser.flags("map", _move, "a source goes on from another table", "OLD=NEW[@VERSION]")
    parser.flag("to", str, None, "the new checkpoint, a directory that doesn't exist yet", "NEW")
    parser.switch("dry-run", "show what the fork would hold, and write nothing")


@command(
    _DESCRIPTION,
    "headwater stream fork /lake/checkpoints/daily --at-batch 41 --to /lake/checkpoints/daily-fixed",
    "headwater stream fork /checkpoints/daily --at-batch 41 --map /lake/orders=/lake/orders_fixed --to /checkpoints/d2",
    flags=[_arguments],
)
def fork(given: Namespace, output: CommandOutput) -> int:
    from headwater.errors import ConfigurationError  # noqa: PLC0415
    from headwater.versions.forks import plan_fork, write_fork  # noqa: PLC0415 - not for every command

    if given.at_batch is None or given.to is None:
        raise ConfigurationError("say behind which batch by --at-batch N, and where the fork goes by --to NEW")
    plan = plan_fork(given.checkpoint, given.at_batch, given.to, tuple(given.map))
    if not given.dry_run:
        write_fork(plan)
    _show(plan, output, is_dry=given.dry_run)
    return Exit.DONE


def _show(plan: ForkPlan, output: CommandOutput, *, is_dry: bool) -> None:
    fields = {
        "checkpoint": str(plan.checkpoint),
        "batch": plan.batch,
        "fork": str(plan.target),
        "query": plan.query_id,
        "new query": plan.new_query_id,
        "stores of state": plan.state.stores,
        "files copied": len(plan.copied),
        "state": Size(plan.state.bytes),
    }
    output.record("plan" if is_dry else "forked", fields, "Would fork" if is_dry else "Forked")
    columns = ("source", "reads", "goes on from", "offset")
    rows = [(each.source, each.format.value, each.moved_to, each.after) for each in plan.sources]
    output.table("sources", columns, rows, "Sources")
    if not is_dry:
        output.note(f"Start the query with checkpointLocation {plan.target}: its next batch is {plan.batch + 1}.")


def _batch(text: str) -> int:
    if not is_number(text):
        raise ValueError(f"{text!r} is no batch: give its number, such as 41")
    return int(text)


def _move(text: str) -> SourceMove:
    from headwater.versions.forks import SourceMove  # noqa: PLC0415

    old, _, new = text.partition("=")
    if not old or not new:
        raise ValueError(f"{text!r} isn't OLD=NEW, such as /lake/orders=/lake/orders_fixed")
    found = _VERSION.fullmatch(new)
    return SourceMove(old, found[1], int(found[2])) if found else SourceMove(old, new)
