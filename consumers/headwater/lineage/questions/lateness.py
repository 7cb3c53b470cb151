"""Why a table is late: what it is made from, who writes that, which of it is the oldest, and where the time went."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cache
from itertools import pairwise
from statistics import median
from typing import Any, Final
from uuid import UUID

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Connection,
    and_,
    bindparam,
    func,
    literal,
    literal_column,
    select,
    union_all,
)

from headwater.events.clock import moment_of, wall_micros
from headwater.events.jobs import JobStatus
from headwater.lineage.mapping.commits import SINK
from headwater.lineage.questions.answers import Answer, AnswerLimit, LimitReason
from headwater.lineage.questions.completeness import complete_until
from headwater.lineage.questions.datasets import Dataset, load_datasets
from headwater.lineage.questions.failed_attempts import AttemptsSince, FailedWrite, JobKey, find_failed_attempts
from headwater.lineage.questions.gaps.model import format_job, time_of, uuid_of
from headwater.lineage.questions.hop_times import (
    NO_TIMES,
    HopCommits,
    HopTimes,
    TriggerCost,
    load_hop_times,
    trigger_cost,
)
from headwater.lineage.questions.name_checks import resolve_table, subject_limits
from headwater.lineage.questions.runs import Run, runs_by_id
from headwater.lineage.questions.traversal.identities import ALWAYS, Era, in_eras
from headwater.lineage.questions.uses import ReachableTables, find_reachable_tables
from headwater.lineage.rows import tables as t
from headwater.lineage.rows.model import NEVER
from headwater.lineage.rows.tombstones import DATA, TABLES_OF
from headwater.lineage.sql.accesses import access_of
from headwater.lineage.sql.key_lookup import has_any_key
from headwater.lineage.sql.tables import table_of
from headwater.lineage.sql.tombstones import hides_anything, not_hidden

DEPTH: Final = 20
AT_MOST: Final = 500
_AT_ONCE: Final = 5_000
_COMMITS_AT_ONCE: Final = 32
_LOOK_BACK: Final = 11
"""How many of the last commits determine the usual interval."""


@dataclass(frozen=True)
class LateHop:
    """A table upstream of the late one, with its last write."""

    table: str
    dataset: Dataset
    depth: int
    """The distance in jobs. The table itself has 0."""
    feeds: tuple[str, ...]
    """The tables that are made from it on this way."""
    job: str | None
    """The job that wrote it last; None if no writer is known."""
    run: UUID | None
    """The run that wrote it last, or that failed to do so after that."""
    status: JobStatus | None
    alive: bool
    barrier: int | None
    snapshot: int | None
    version: str | None
    at: datetime | None
    """When that was committed."""
    age: timedelta | None
    usual: timedelta | None
    """The usual interval between two of its commits."""
    error: str | None
    """The error that its run failed with."""
    parent: str | None = None
    """The application or block that the job is a step of."""
    attempted: datetime | None = None
    """When a run failed to write it, if nothing has written it since."""
    is_oldest: bool = False
    """Whether it is the oldest of everything that the table is made from."""
    is_view: bool = False
    """Whether it is a view, which nobody writes."""
    times: HopTimes = NO_TIMES
    """Where the time of its last commit went."""
    cost: TriggerCost | None = None
    """What it costs to write it as often as usual, if that is known."""

    @property
    def is_overdue(self) -> bool:
        """Whether it is more than twice as old as its usual interval."""
        return self.age is not None and self.usual is not None and self.age > 2 * self.usual


def lateness(
    connection: Connection,
    table: str | Dataset,
    *,
    depth: int = DEPTH,
    at_most: int = AT_MOST,
    now: datetime | None = None,
) -> Answer[LateHop]:
    """Return the table and everything that it is made from, nearest first. The oldest table is marked."""
    about = resolve_table(connection, table)
    moment = moment_of(wall_micros()) if now is None else now
    found = find_reachable_tables(connection, about.dataset.key, up=True, depth=depth, at_most=at_most)
    datasets = load_datasets(connection, {*found.depths, *found.limits.datasets})
    written = _last_writes(connection, found.eras)
    failed = _failed_attempts(connection, found, written, datasets)
    ids = {access.run for access in (*written.values(), *failed.values()) if access and access.run}
    runs = runs_by_id(connection, ids, moment)
    times = load_hop_times(connection, {key: last.commits for key, last in written.items() if last})
    hops = [
        replace(
            _hop(datasets[key], written[key], failed.get(key), runs, moment),
            depth=far,
            feeds=_feeds(key, found, datasets),
            is_view=key in found.views,
            **_times_and_cost(written[key], times.get(key)),
        )
        for key, far in sorted(found.depths.items(), key=lambda pair: (pair[1], datasets[pair[0]].label))
    ]
    limits = [*subject_limits(connection, table=about, now=now), *found.limits.as_limits(datasets)]
    limits += [
        AnswerLimit(LimitReason.UNKNOWN_WRITER, hop.table, "no writer is known")
        for hop in hops
        if hop.job is None and not hop.is_view
    ]
    if found.is_cut:
        limits.append(AnswerLimit(LimitReason.CUT, about.label, f"{depth} hops and {at_most} tables at most"))
    return Answer(tuple(_mark_oldest(hops)), complete_until(connection, now), tuple(limits))


@dataclass(frozen=True)
class _LastWrite:
    """Who wrote a table last, and what."""

    job: JobKey
    parent: JobKey
    run: bytes | None
    times: tuple[int, ...]
    """Of the last commits, the newest first."""
    commits: HopCommits
    barrier: int | None = None
    snapshot: int | None = None
    version: str | None = None


def _last_writes(connection: Connection, eras: Mapping[bytes, Mapping[bytes, Era]]) -> dict[bytes, _LastWrite | None]:
    """Return who wrote each table last, by its current identity."""
    row = table_of(t.TABLE_LINEAGE).c
    always = [key for several in eras.values() for key, era in several.items() if era == ALWAYS]
    conditions = [
        has_any_key(connection.dialect.name, row.dataset, always[start : start + _AT_ONCE])
        for start in range(0, len(always), _AT_ONCE)
    ]
    writers: dict[bytes, list[Any]] = {}
    for writer in (writer for condition in conditions for writer in _load_writers(connection, condition)):
        writers.setdefault(bytes(writer.dataset), []).append(writer)
    last: dict[bytes, list[Any]] = {}
    for one, several in eras.items():
        rows = [writer for key, era in several.items() if era == ALWAYS for writer in writers.get(key, ())]
        at_times = {key: era for key, era in several.items() if era != ALWAYS}
        if at_times:
            rows += _load_writers(connection, in_eras(row, at_times))
        last[one] = sorted(rows, key=lambda writer: -writer.last)[:_LOOK_BACK]
    commits = _last_commits(connection, eras, {one: rows[0] for one, rows in last.items() if rows})
    alone = {one: rows[1] for one, rows in last.items() if _is_alone(commits.get(one, ()), rows)}
    before = _last_commits(connection, eras, alone) if alone else {}
    return {one: _last_write(rows, commits[one], before.get(one, ())) if rows else None for one, rows in last.items()}


def _is_alone(commits: Sequence[Any], writers: Sequence[Any]) -> bool:
    """Return whether a run made one commit only, so that the one before it is of the job's run before."""
    if len(writers) < 2 or len({commit.barrier for commit in commits}) != 1:
        return False
    last, before = writers[0], writers[1]
    return bool((last.job_namespace, last.job) == (before.job_namespace, before.job))


def _load_writers(connection: Connection, about: ColumnElement[bool]) -> Iterator[Any]:
    """Yield the last runs that wrote each of these tables."""
    row = table_of(t.TABLE_LINEAGE).c
    is_visible = and_(row.side == SINK, not_hidden(row, row, TABLES_OF[SINK]))
    rank = func.row_number().over(partition_by=row.dataset, order_by=row.last.desc()).label("rank_in_table")
    columns = (row.dataset, row.job_namespace, row.job, row.parent_namespace, row.parent_job, row.run, row.last)
    ranked = select(*columns, rank).where(about, is_visible).subquery()
    yield from connection.execute(select(ranked).where(ranked.c.rank_in_table <= _LOOK_BACK))


def _last_write(writers: Sequence[Any], commits: Sequence[Any], before: Sequence[Any]) -> _LastWrite:
    last = writers[0]
    in_run = tuple(commit.committed_at for commit in commits if commit.committed_at is not None)
    over_runs = tuple(
        writer.last for writer in writers if (writer.job_namespace, writer.job) == (last.job_namespace, last.job)
    )
    times = in_run if len(in_run) > 2 else (*in_run[:1], *over_runs[1:]) or over_runs
    run_id = None if last.run is None else bytes(last.run)
    job, parent = (last.job_namespace, last.job), (last.parent_namespace, last.parent_job)
    known = HopCommits(commits, before[0].ended_at if before else None)
    if not commits:
        return _LastWrite(job, parent, run_id, times or (last.last,), known)
    newest = commits[0]
    return _LastWrite(
        job, parent, run_id, times or (last.last,), known, newest.barrier, newest.snapshot, newest.version
    )


def _failed_attempts(
    connection: Connection,
    found: ReachableTables,
    written: Mapping[bytes, _LastWrite | None],
    datasets: Mapping[bytes, Dataset],
) -> dict[bytes, FailedWrite]:
    wanted = {
        key: AttemptsSince(
            since=last.times[0] if last else NEVER,
            members=frozenset(found.eras[key]),
            names=frozenset(datasets[key].known_as),
            jobs=frozenset({last.job, last.parent}) if last else frozenset(),
            run=last.run if last else None,
        )
        for key, last in written.items()
        if key not in found.views
    }
    return find_failed_attempts(connection, wanted) if wanted else {}


def _last_commits(
    connection: Connection, eras: Mapping[bytes, Mapping[bytes, Era]], writers: Mapping[bytes, Any]
) -> dict[bytes, Sequence[Any]]:
    """Return the last commits on each table of the run and job that wrote it last, the newest first.

    Tables with one identity, as nearly all are, are asked for together; each of the others by itself.
    """
    hides_any = bool(connection.scalar(select(literal(1)).where(hides_anything())))
    found: dict[bytes, Sequence[Any]] = dict.fromkeys(writers, ())
    in_runs = [one for one, access in writers.items() if access.run is not None]
    alone = [one for one in in_runs if list(eras[one].values()) == [ALWAYS]]
    for start in range(0, len(alone), _COMMITS_AT_ONCE):
        few = alone[start : start + _COMMITS_AT_ONCE]
        found.update(_commits_of_each(connection, {one: writers[one] for one in few}, hides_any))
    for one in set(in_runs).difference(alone):
        by = {"run": writers[one].run, "job": writers[one].job}
        chosen = _commits(hides_any, bindparam("run"), bindparam("job"))
        found[one] = connection.execute(chosen.where(in_eras(access_of(t.WRITE).c, eras[one])), by).all()
    return found


def _commits_of_each(
    connection: Connection, writers: Mapping[bytes, Any], hides_any: bool
) -> Iterator[tuple[bytes, Sequence[Any]]]:
    tables = list(writers)
    size = 1 << (len(tables) - 1).bit_length()  # so that few statements have to be built, whatever is asked
    parameters: dict[str, Any] = {}
    for n in range(size):
        writer = writers[tables[min(n, len(tables) - 1)]]
        parameters |= {f"run{n}": writer.run, f"job{n}": writer.job, f"dataset{n}": writer.dataset}
    found: list[list[Any]] = [[] for _ in range(size)]
    for commit in connection.execute(_commits_of_several(hides_any, size), parameters):
        found[commit.place].append(commit)
    for one, several in zip(tables, found, strict=False):
        yield one, sorted(several, key=lambda commit: (-commit.barrier, -(commit.snapshot or 0)))


_OF_COMMIT: Final = (
    *("barrier", "committed_at", "started_at", "ended_at"),
    *("job_namespace", "job", "parent_namespace", "parent_job", "run"),
)


@cache
def _commits_of_several(hides_any: bool, size: int) -> Any:
    """Select the last commits on several tables. Each is selected by itself: only so all databases read no more than
    the last commits of a long run. The statement is built once, which takes longer than to execute it."""
    row = access_of(t.WRITE).c
    parts = [
        _commits(hides_any, bindparam(f"run{n}"), bindparam(f"job{n}"))
        .add_columns(literal_column(str(n)).label("place"))
        .where(row.dataset == bindparam(f"dataset{n}"))
        .subquery(f"one{n}")
        for n in range(size)
    ]
    return union_all(*map(select, parts))


def _commits(hides_any: bool, run: BindParameter[Any], job: BindParameter[Any]) -> Any:
    """Select the last commits of a run and job, without hidden ones. Where nothing is hidden, nothing is
    looked up."""
    commit, write = table_of(t.COMMIT), access_of(t.WRITE)
    its = and_(write.c.commit_id == commit.c.id, write.c.barrier == commit.c.barrier)
    chosen = select(
        *(commit.c[name] for name in _OF_COMMIT),
        *(write.c[name] for name in ("commit_id", "snapshot", "version", "snapshot_time", "file_count", "byte_count")),
    )
    chosen = chosen.join_from(commit, write, its).where(commit.c.run == run, commit.c.job == job)
    chosen = chosen.where(not_hidden(write.c, commit.c, DATA)) if hides_any else chosen
    return chosen.order_by(commit.c.barrier.desc(), write.c.snapshot.desc()).limit(_LOOK_BACK)


def _hop(
    dataset: Dataset, written: _LastWrite | None, failed: FailedWrite | None, runs: dict[bytes, Run], now: datetime
) -> LateHop:
    run_id = failed.run if failed else written.run if written else None
    run = runs.get(run_id) if run_id else None
    status = run.status if run else None
    at = time_of(written.times[0]) if written else None
    return LateHop(
        table=dataset.label,
        dataset=dataset,
        depth=0,
        feeds=(),
        job=format_job(*written.job) if written else None,
        parent=format_job(*written.parent) if written else None,
        run=uuid_of(run_id) if run_id else None,
        status=JobStatus.FAILED if failed and status is not JobStatus.KILLED else status,
        alive=run.alive if run and not failed else False,
        barrier=written.barrier if written else None,
        snapshot=written.snapshot if written else None,
        version=written.version if written else None,
        at=at,
        age=None if at is None else now - at,
        usual=_usual(written.times) if written else None,
        error=(failed.error if failed else None) or (run.error if run else None),
        attempted=time_of(failed.at) if failed else None,
    )


def _times_and_cost(written: _LastWrite | None, times: HopTimes | None) -> dict[str, Any]:
    if written is None or times is None:
        return {}
    return {"times": times, "cost": trigger_cost(written.commits, _usual(written.times), times)}


def _usual(times: Sequence[int]) -> timedelta | None:
    spans = [later - earlier for later, earlier in pairwise(times) if later > earlier]
    return timedelta(microseconds=median(spans)) if len(spans) > 1 else None


def _feeds(key: bytes, found: ReachableTables, datasets: dict[bytes, Dataset]) -> tuple[str, ...]:
    return tuple(sorted({datasets[link.target].label for link in found.links if link.source == key}))


def _mark_oldest(hops: Sequence[LateHop]) -> list[LateHop]:
    ages = [hop.age for hop in hops if hop.depth and hop.age is not None]
    return [replace(hop, is_oldest=bool(ages) and hop.depth > 0 and hop.age == max(ages)) for hop in hops]
