"""How a barrier of an aligned job is made again: its name leads to its checkpoint, and that to its tables."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from headwater.errors import ConfigurationError
from headwater.versions.aligned.batch import mark_of
from headwater.versions.aligned.checkpoints import Checkpoint
from headwater.versions.aligned.claims import checkpoints_of
from headwater.versions.aligned.formats import TableLooker
from headwater.versions.aligned.formats.protocol import AlignableTable, CommitEffect, UnalignableTableError
from headwater.versions.aligned.repetition import CommittedBarrier
from headwater.versions.spark_tables import identify
from headwater.versions.validation.model import (
    ComparedRows,
    RedirectedOutput,
    RepeatedBarrier,
    ResultStart,
    UnvalidatableError,
    ValidationPlan,
)
from headwater.versions.validation.results import problems_of_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from sqlalchemy import Connection


def plan_repetition(
    connection: Connection,
    job: str,
    number: int | None = None,
    *,
    group: str | None = None,
    sink: str | None = None,
    allowed: Collection[str] = (),
) -> RepeatedBarrier:
    """Return which barrier of an aligned job is made again: that of a data version, or the newest one that it has
    committed. `sink` is the table that is compared; it may be left out if the job wrote only one."""
    found = checkpoints_of(connection, job)
    if group is None and len(found) > 1:
        raise ConfigurationError(f"several groups have a job {job!r}: {', '.join(sorted(found))}. Say which by --group")
    group = next(iter(found), None) if group is None else group
    if group is None or group not in found:
        where = f" of the group {group}" if group else ""
        raise ConfigurationError(
            f"the store knows no aligned job {job!r}{where}: `headwater version list` lists the groups, and with the "
            "name of one its jobs"
        )
    checkpoint = Checkpoint(found[group])
    start = checkpoint.start()
    if start is None:
        raise UnvalidatableError(
            job, [f"its checkpoint {found[group]} isn't on this machine: run this where the job runs"]
        )
    newest = checkpoint.newest()
    if number is None and newest is not None:
        number = newest.number if newest.is_committed else newest.number - 1
    barrier = None if number is None else checkpoint.barrier(number)
    if barrier is None or not barrier.is_committed:
        raise UnvalidatableError(f"{job}@{number}", ["the job hasn't committed it"])
    sinks = tuple(dict.fromkeys(key.rpartition(" ")[0] for key in barrier.sinks))
    if sink is None and len(sinks) != 1:
        known = (
            f"it wrote {', '.join(sinks)}: say which one is compared, by --sink" if sinks else "it wrote no table once"
        )
        raise UnvalidatableError(f"{job}@{number}", [known])
    if sink is not None and sink not in sinks:
        raise ConfigurationError(f"data version {number} of {job} didn't write {sink}, but {', '.join(sinks)}")
    return RepeatedBarrier(
        committed=CommittedBarrier(start, barrier), sink=sink or sinks[0], sinks=sinks, allowed=tuple(allowed)
    )


def plan_in_session(spark: SparkSession, repeated: RepeatedBarrier) -> ValidationPlan:
    """Return what is redirected and compared, from the tables themselves. An UnvalidatableError lists what stands in
    the way."""
    problems = list(_problems_of_sources(spark, repeated))
    looker = TableLooker(spark)
    outputs: dict[str, RedirectedOutput] = {}
    for name in repeated.sinks:
        table = looker.sink(name)
        if table is None:
            problems.append(f"{name} isn't there any more")
            continue
        outputs[name] = _output(spark, table, repeated)
        if name == repeated.sink:
            problems += _problems_of_sink(table, outputs[name])
    sink = outputs.get(repeated.sink)
    if problems or sink is None:
        raise UnvalidatableError(repeated.label, problems)
    return ValidationPlan(
        sink=sink,
        snapshot=sink.commits[-1][1],
        rows=ComparedRows.ALL,
        inputs=(),
        outputs=tuple(outputs.values()),
        job=repeated.committed.start.job,
        run=None,
        allowed=repeated.allowed,
    )


def _problems_of_sources(spark: SparkSession, repeated: RepeatedBarrier) -> Iterator[str]:
    cut = repeated.committed.barrier.cut
    for table in dict.fromkeys(repeated.committed.start.tables.values()):
        yield from problems_of_table(spark, table, cut[table].snapshot, cut[table].generation)


def _output(spark: SparkSession, table: AlignableTable, repeated: RepeatedBarrier) -> RedirectedOutput:
    """Return a sink with the snapshots that the barrier made of it. Its result begins as a copy: whether the function
    reads or changes what was there can't be seen from here."""
    start, barrier = repeated.committed.start, repeated.committed.barrier
    before = {
        int(key.rpartition(" ")[2]): at for key, at in barrier.sinks.items() if key.rpartition(" ")[0] == table.name
    }
    commits: list[tuple[int | None, int]] = []
    for step, at in sorted(before.items()):
        found = table.find_mark(mark_of(start.mark_prefix, step, barrier.number), at).snapshot
        if found is not None:
            commits.append((at, found))
    catalog, identifier = identify(spark, table.name)
    parts = [str(catalog.name()), *map(str, identifier.namespace()), str(identifier.name())]
    is_empty = bool(commits) and commits[0][0] is None
    return RedirectedOutput(
        table=".".join(parts),
        format=table.format.upper(),
        generation=table.generation,
        commits=tuple(commits),
        start=ResultStart.EMPTY if is_empty else ResultStart.COPY,
    )


def _problems_of_sink(table: AlignableTable, output: RedirectedOutput) -> Iterator[str]:
    if not output.commits:
        yield f"{table.name} has no snapshot of this barrier: it has expired, was rolled back, or nothing was written"
        return
    before, last = output.before, output.commits[-1][1]
    if before is None:
        return
    made = {snapshot for _, snapshot in output.commits}
    try:
        line = table.commits_after(table.at(before)) or []
    except UnalignableTableError as e:
        yield str(e)
        return
    if last not in [commit.snapshot for commit in line]:
        yield f"{table.name}@{last} isn't made from its snapshot {before} any more: it has expired, or was rolled back"
        return
    for commit in line:
        if commit.snapshot not in made and commit.effect is not CommitEffect.KEEPS:
            other = f"another job wrote {table.name}@{commit.snapshot}, between {before} and {last}"
            yield f"{other}, so all of its rows can't be compared"
        if commit.snapshot == last:
            return
