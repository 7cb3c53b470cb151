"""Random histories of tables that carry the rows they were made from, and what these rows say of consistency.

No version is compared here. Each commit of a table writes a row of its own; what it reads is copied row by row, with
all that the rows carry of tables further up. A copy is kept apart for each read of a state and for each chain of
changes, and goes on by the rows that came and went. So two tables are consistent if, for each table that rows of both
came from, the sets of its rows that were copied together are the same.

What a history has: appends, overwrites, merges, several reads of one table, chains that begin late, two jobs in one
table, compactions, rewritten manifests, rollbacks with snapshot numbers that come again (Paimon) and without (Iceberg),
commits that are held back and then published, or never, tables that are dropped and made again, branches of Paimon that
are read and become main, and topics of Kafka that are read by positions. A merge replaces all rows that came from one
state, or none.

With gaps, topics are written from tables, rows come from what Spark doesn't show, lineage is deleted, commits of Delta
and Paimon lack their parent, and events are lost, but not those of a rollback, and not the only one that says from
which tables another one is made, or that a table was made again: what nobody ever reported can't be known. So what
Spark doesn't show are rows of tables that are known to be behind a table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, NamedTuple, TypeAlias

from sqlalchemy import Connection

from headwater.errors import ConfigurationError
from headwater.events import BranchMerged, CreateBranch, Event
from headwater.events.administration import LineageDeleted, LineageScope
from headwater.events.jobs import CommitKind, Committed, Input, Output, OverwriteScope, RangeStart, ReadMode
from headwater.events.names import JobName, TableName
from headwater.events.scalars import Format
from headwater.lineage.maintenance.deletion import delete_job, expire_before
from headwater.testing.examples import CONTEXT
from headwater.versions import NoAlignmentError, align, check
from tests.kit.lineage.scripted_producer import ScriptedProducer, at, dataset, store

Rows: TypeAlias = frozenset[int]
Path: TypeAlias = tuple[tuple[str, str], ...]
"""By which copies of which tables rows came."""
NO_ROWS: Rows = frozenset()
_COUNTED = {Format.DELTA, Format.PAIMON}
"""Formats whose numbers tell a table's first commit, 0 or 1, from one that lacks its parent."""
ALL, PART, NOTHING, UNKNOWN = (
    OverwriteScope.ALL,
    OverwriteScope.PART,
    OverwriteScope.NOTHING,
    OverwriteScope.UNKNOWN,
)


class Copy(NamedTuple):
    """Rows of one table that were copied together."""

    rows: Rows
    lacking: Rows = NO_ROWS
    """What was there before a chain of changes began, and isn't missed."""

    def is_like(self, other: Copy) -> bool:
        beside = self.lacking | other.lacking
        return self.rows - beside == other.rows - beside


@dataclass(frozen=True)
class Version:
    """A version of a table: its own rows, and those that it copied."""

    number: int
    own: Rows
    copies: Mapping[Path, Copy]

    @property
    def view(self) -> dict[Path, Copy]:
        """What somebody sees who reads it."""
        return {(): Copy(self.own), **self.copies}


@dataclass
class Chain:
    """How far a job has read the changes of a table."""

    label: str
    generation: int
    at: Version


@dataclass
class Table:
    name: str
    format: Format
    sources: tuple[str, ...]
    jobs: int
    generation: int = 1
    made: int = 0
    """How many snapshots there ever were in this generation."""
    line: list[Version] = field(default_factory=list)
    """The versions that the table has now, oldest first."""
    held_back: list[tuple[Version, Version | None]] = field(default_factory=list)
    """Versions that aren't of main, with what each was made on."""
    chains: dict[tuple[str, int], Chain] = field(default_factory=dict)
    """By source and job."""
    branch: str | None = None
    """A branch of Paimon's, beside main."""
    was_set_back: bool = False
    side: list[Version] = field(default_factory=list)
    """Its versions, with those that it was made from."""
    offsets: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Of a topic the ends of its partitions, by the number of the version."""

    @property
    def head(self) -> Version | None:
        return self.line[-1] if self.line else None

    def next_number(self) -> int:
        if self.format is Format.ICEBERG:
            self.made += 1
            return (self.made * 7_919 + 11 + self.generation * 13) % 104_729
        return self.line[-1].number + 1 if self.line else self.first_number

    @property
    def first_number(self) -> int:
        return 0 if self.format in {Format.DELTA, Format.KAFKA} else 1

    def where(self, number: int) -> dict[str, Any]:
        if self.format is Format.KAFKA:
            return {"dataset": dataset(self.name), "format": self.format, "version": self._position(number)}
        return {
            "dataset": dataset(self.name),
            "table": TableName(catalog="lake", database="db", table=self.name),
            "generation": str(self.generation),
            "format": self.format,
            "snapshot": number,
        }

    def start(self, number: int) -> RangeStart:
        """Where changes begin that come after a version."""
        if self.format is Format.KAFKA:
            return RangeStart(version=self._position(number))
        return RangeStart(snapshot=number)

    def _position(self, number: int) -> str:
        first, second = self.offsets.get(number, (0, 0))
        return f'{{"0":{first},"1":{second}}}'


class History:
    """A random history, and its events."""

    def __init__(self, random: Random, *, has_gaps: bool) -> None:
        self._random, self._has_gaps = random, has_gaps
        self._rows = self._minute = self._labels = self._branches = 0
        self._producer = ScriptedProducer(1)
        self._reported: dict[str, set[str]] = {}
        """By table those that its commits have read."""
        forms = [Format.DELTA, Format.PAIMON, Format.PAIMON, Format.ICEBERG, Format.ICEBERG, Format.KAFKA]
        self.tables: dict[str, Table] = {}
        for name in "abcdef"[: random.randint(3, 6)]:
            before = sorted(self.tables)
            sources = tuple(random.sample(before, min(len(before), random.choice([0, 1, 1, 2]))))
            form = random.choice(forms)
            sources = () if form is Format.KAFKA and not has_gaps else sources
            self.tables[name] = Table(name, form, sources, random.choice([1, 1, 1, 2]))
        for _ in range(random.randint(4, 26)):
            self._happen(self.tables[random.choice(sorted(self.tables))])
        self.lost: list[Event] = self._lose() if has_gaps else []
        gone = {id(each) for each in self.lost}
        self.events = [each for each in self._producer.events if id(each) not in gone]

    def _happen(self, table: Table) -> None:
        dice = self._random.randrange(40)
        if table.format is Format.KAFKA:
            self._produce(table)
        elif dice == 0 and table.line:
            table.generation += 1
            table.made, table.line, table.held_back, table.chains = 0, [], [], {}
            table.branch, table.side = None, []
        elif dice == 11 and self._minute and self._has_gaps:
            self._delete_lineage(table)
        elif dice in {7, 8, 9, 10} and table.format is Format.PAIMON and table.line:
            self._use_branch(table)
        elif dice in {1, 2, 3} and len(table.line) > 1 and table.format is not Format.DELTA:
            self._roll_back(table)
        elif dice in {4, 5, 6} and table.head is not None:
            self._rewrite(table)
        elif dice in {7, 8, 9, 10} and table.format is Format.ICEBERG and table.head is not None:
            if not table.held_back or self._random.random() < 0.4:
                self._commit(table, held_back=True)
            else:
                self._publish(table)
        else:
            self._commit(table, held_back=False)

    def _commit(self, table: Table, *, held_back: bool) -> None:
        job = self._random.randrange(table.jobs)
        scope = self._random.choice([NOTHING, NOTHING, NOTHING, PART, ALL] if table.head else [NOTHING, ALL])
        if held_back:
            scope = NOTHING
        before = table.head if scope is not ALL else None
        copies = {} if before is None else dict(before.copies)
        if scope is PART:
            copies = self._replace_part(copies)
        chains = {} if scope is ALL else dict(table.chains)
        inputs = [
            read
            for name in table.sources
            if self._random.random() < 0.8 and (read := self._read(self.tables[name], job, copies, chains))
        ]
        if table.sources and not inputs:
            return
        inputs += self._read_unseen(table, copies)
        own = (NO_ROWS if before is None else before.own) | {self._row()}
        parent = table.head
        version = Version(table.next_number(), own, copies)
        kind = CommitKind.APPEND if scope is NOTHING else CommitKind.MERGE if scope is PART else CommitKind.OVERWRITE
        if held_back:
            table.held_back.append((version, parent))
        else:
            table.line.append(version)
            table.chains = chains
        self._emit(table, version.number, parent, kind, scope, inputs, main=not held_back, job=job)

    def _replace_part(self, copies: Mapping[Path, Copy]) -> dict[Path, Copy]:
        """All that came from some states is replaced."""
        states = sorted({path[0] for path in copies if not path[0][1].startswith("chain")})
        gone = {each for each in states if self._random.random() < 0.5}
        return {path: each for path, each in copies.items() if path[0] not in gone}

    def _read(
        self, source: Table, job: int, copies: dict[Path, Copy], chains: dict[tuple[str, int], Chain]
    ) -> Input | None:
        if not source.line:
            return None
        if source.branch is not None and self._random.random() < 0.2:
            return self._read_state(source, source.side[-1], copies, branch=source.branch)
        version = source.line[-min(self._random.choice([1, 1, 1, 2]), len(source.line))]
        chain = chains.get((source.name, job))
        if chain is None and self._random.random() < 0.5:
            return self._read_state(source, version, copies)
        if chain is not None and self._random.random() < 0.1:
            return self._read_state(source, version, copies)
        return self._read_changes(source, job, copies, chains)

    def _read_state(
        self, source: Table, version: Version, copies: dict[Path, Copy], branch: str | None = None
    ) -> Input:
        step = (source.name, f"state{self._label()}")
        copies |= {(step, *path): each for path, each in version.view.items()}
        where = source.where(version.number)
        return Input(**where, branch=branch, main=branch is None, mode=ReadMode.STATE)

    def _read_unseen(self, table: Table, copies: dict[Path, Copy]) -> list[Input]:
        """Rows that a commit reads by way of something that Spark doesn't show, of a table that others of its commits
        have read: of what no commit was ever seen to read, nobody can know."""
        seen = [each for each in self._known_behind(table) if each.line]
        if not seen or not self._has_gaps or self._random.random() >= 0.04:
            return []
        source = self._random.choice(seen)
        self._read_state(source, self._random.choice(source.line), copies)
        return [Input(dataset=None, opaque="an RDD")]

    def _known_behind(self, table: Table) -> list[Table]:
        found: set[str] = set()
        waiting = [table.name]
        while waiting:
            new = self._reported.get(waiting.pop(), set()) - found
            found |= new
            waiting += new
        return [self.tables[each] for each in sorted(found)]

    def _read_changes(
        self, source: Table, job: int, copies: dict[Path, Copy], chains: dict[tuple[str, int], Chain]
    ) -> Input | None:
        chain, version = chains.get((source.name, job)), source.line[-1]
        if chain is not None and chain.generation == source.generation:
            since = self._position_of(chain.at, source)
            if since is None or since.number == version.number:
                return None
            number, label, is_new = since.number, chain.label, chain.at is not since
            if is_new:  # the number came again: what was read stays as it is, by itself
                label = f"chain{self._label()}"
        else:
            since = self._beginning(source, job)
            if since is None and source.format is Format.ICEBERG:
                label = f"chain{self._label()}"
                copies |= {((source.name, label), *path): each for path, each in version.view.items()}
                chains[source.name, job] = Chain(label, source.generation, version)
                return Input(**source.where(version.number), mode=ReadMode.STATE)
            number = source.first_number - 1 if since is None else since.number
            found = None if since is None else self._label_at(copies, source, since)
            if found is not None and any(each.label == found for each in chains.values()):
                return None  # that of another job, which goes on by itself
            label, is_new = f"chain{self._label()}", found is None
            for path in [each for each in copies if each[0] == (source.name, found)]:
                copies[((source.name, label),) + path[1:]] = copies.pop(path)  # noqa: RUF005
        self._apply(copies, (source.name, label), since, version, is_new=is_new)
        chains[source.name, job] = Chain(label, source.generation, version)
        return Input(**source.where(version.number), mode=ReadMode.CHANGES, since=source.start(number))

    def _position_of(self, version: Version, source: Table) -> Version | None:
        """The version that the table has now with the number of the one up to which a chain has got."""
        found = [each for each in source.line if each.number == version.number]
        return found[0] if found and found[0].number != source.line[-1].number else None

    def _beginning(self, source: Table, job: int) -> Version | None:
        is_late = job == 0 and len(source.line) > 1 and self._random.random() < 0.2
        return self._random.choice(source.line[:-1]) if is_late else None

    def _label_at(self, copies: Mapping[Path, Copy], source: Table, since: Version) -> str | None:
        """The copy of a source that has just what was there where changes begin: these go on from it."""
        for label in sorted({path[0][1] for path in copies if path[0][0] == source.name}):
            copied = {path[1:]: each.rows for path, each in copies.items() if path[0] == (source.name, label)}
            if copied == {path: each.rows for path, each in since.view.items()}:
                return label
        return None

    def _apply(
        self, copies: dict[Path, Copy], step: tuple[str, str], since: Version | None, until: Version, *, is_new: bool
    ) -> None:
        """Apply what came and went in a table between two versions."""
        before, after = {} if since is None else since.view, until.view
        for path in before.keys() | after.keys():
            there = copies.get((step, *path), Copy(NO_ROWS))
            old, new = before.get(path, Copy(NO_ROWS)).rows, after.get(path, Copy(NO_ROWS)).rows
            lacking = there.lacking | (old if is_new else NO_ROWS) | after.get(path, Copy(NO_ROWS)).lacking
            rows = (there.rows - (old - new)) | (new - old)
            copies[(step,) + path] = Copy(rows, lacking)  # noqa: RUF005
            if not rows and not lacking:
                del copies[(step,) + path]  # noqa: RUF005

    def _rewrite(self, table: Table) -> None:
        """Another version with the same rows."""
        head = table.line[-1]
        kind = CommitKind.COMPACT
        if table.format is Format.ICEBERG and self._random.random() < 0.5:
            kind = CommitKind.REPLACE
        version = Version(table.next_number(), head.own, head.copies)
        table.line.append(version)
        self._emit(table, version.number, head, kind, NOTHING, [])

    def _roll_back(self, table: Table) -> None:
        newest = table.line[-1]
        del table.line[self._random.randrange(1, len(table.line)) :]
        if table.line[-1] is newest:
            return
        table.was_set_back = True
        table.chains = {}  # the jobs begin anew, where their own commits may be gone
        parent = None if table.format is Format.PAIMON else newest
        self._emit(table, table.line[-1].number, parent, CommitKind.ROLLBACK, UNKNOWN, [])

    def _produce(self, topic: Table) -> None:
        """Add records of others to a topic, or of a job that reads tables: which offsets these have nobody says."""
        before = topic.head
        copies = {} if before is None else dict(before.copies)
        names = [each for each in topic.sources if self.tables[each].line and self._random.random() < 0.8]
        inputs = [self._read_state(self.tables[each], self.tables[each].line[-1], copies) for each in names]
        number = len(topic.line)
        ends = topic.offsets.get(number - 1, (0, 0))
        grown = (ends[0] + 1, ends[1]) if self._random.random() < 0.5 else (ends[0], ends[1] + 1)
        topic.offsets[number] = grown
        topic.line.append(Version(number, (NO_ROWS if before is None else before.own) | {self._row()}, copies))
        self._minute += 1
        if inputs:
            output = Output(dataset=dataset(topic.name), format=topic.format, made_from=tuple(range(len(inputs))))
            self._tell(topic, output, inputs, 0)

    def _use_branch(self, table: Table) -> None:
        """Make a branch, write it, or let its snapshots take the place of those that main has had since."""
        self._minute += 1
        event = {
            "context": CONTEXT,
            "identifier": TableName(catalog="lake", database="db", table=table.name),
            "dataset": dataset(table.name),
            "generation": str(table.generation),
        }
        if table.branch is None:
            self._branches += 1
            table.branch = f"side{self._branches}"
            table.side = table.line[: self._random.randint(1, len(table.line))]
            self._producer.emit(
                self._minute, CreateBranch, **event, branch=table.branch, snapshot=table.side[-1].number
            )
        elif self._random.random() < 0.6:
            self._write_branch(table, table.branch)
        else:
            numbers = {"previous_snapshot": table.line[-1].number, "snapshot": table.side[-1].number}
            self._producer.emit(self._minute, BranchMerged, **event, branch=table.branch, **numbers)
            table.line, table.side, table.branch = table.side, [], None
            table.chains = {}

    def _write_branch(self, table: Table, branch: str) -> None:
        parent = table.side[-1]
        scope = self._random.choice([NOTHING, ALL])
        copies = {} if scope is ALL else dict(parent.copies)
        sources = [self.tables[each] for each in table.sources if self.tables[each].line]
        inputs = [self._read_state(each, each.line[-1], copies) for each in sources]
        own = (NO_ROWS if scope is ALL else parent.own) | {self._row()}
        table.side.append(Version(parent.number + 1, own, copies))
        output = Output(
            **table.where(parent.number + 1),
            branch=branch,
            main=False,
            parent=parent.number,
            commit_kind=CommitKind.APPEND if scope is NOTHING else CommitKind.OVERWRITE,
            replaced=scope,
            made_from=tuple(range(len(inputs))),
        )
        self._tell(table, output, inputs, 0)

    def _delete_lineage(self, table: Table) -> None:
        """Delete lineage up to a time: of all, of a table, or of a job.

        Not of one that set its table back, or made it again: with its lineage that is forgotten, too.
        """
        self._minute += 1
        before = at(self._random.randint(1, self._minute))
        drafts = [
            expire_before(before),
            LineageDeleted(scope=LineageScope.DATA, dataset=dataset(table.name), before=before),
        ]
        if table.generation == 1 and not table.was_set_back:
            drafts.append(delete_job(LineageScope.ALL, JobName(name=f"{table.name}.0"), before=before))
        draft = self._random.choice(drafts)
        fields = {name: getattr(draft, name) for name in draft.model_fields_set - {"kind"}}
        self._producer.emit(self._minute, LineageDeleted, **fields)

    def _publish(self, table: Table) -> None:
        """Publish a commit that was held back: as it is, if nothing came meanwhile, or else picked."""
        held, parent = table.held_back.pop(0)
        head = table.line[-1]
        if parent is head:
            table.line.append(held)
            self._emit(table, held.number, parent, CommitKind.CHERRY_PICK, UNKNOWN, [])
            return
        known = parent.copies if parent is not None else {}
        copies = dict(head.copies)
        for path, each in held.copies.items():
            was = known.get(path)
            if was is None:
                copies[path] = each
            elif was != each and path in copies:
                there = copies[path]
                copies[path] = Copy((there.rows - (was.rows - each.rows)) | (each.rows - was.rows), there.lacking)
            elif was != each:
                copies[path] = Copy(each.rows - was.rows, each.lacking | was.rows)
        version = Version(table.next_number(), head.own | (held.own - (parent.own if parent else NO_ROWS)), copies)
        table.line.append(version)
        table.chains = {}
        picked = []
        if parent is not None and self._random.random() < 0.8:
            where = table.where(held.number)
            picked = [Input(**where, mode=ReadMode.CHANGES, since=RangeStart(snapshot=parent.number))]
        self._emit(table, version.number, head, CommitKind.CHERRY_PICK, NOTHING, picked)

    def _emit(  # noqa: PLR0917 - what a commit is
        self,
        table: Table,
        number: int,
        parent: Version | None,
        kind: CommitKind,
        scope: OverwriteScope,
        inputs: Sequence[Input],
        *,
        main: bool = True,
        job: int = 0,
    ) -> None:
        self._minute += 1
        is_counted = table.format in _COUNTED and number > 1
        is_parent_lost = self._has_gaps and is_counted and self._random.random() < 0.1
        output = Output(
            **table.where(number),
            main=main,
            parent=None if parent is None or is_parent_lost else parent.number,
            commit_kind=kind,
            replaced=scope,
            made_from=tuple(range(len(inputs))),
        )
        self._tell(table, output, inputs, job)

    def _tell(self, table: Table, output: Output, inputs: Sequence[Input], job: int) -> None:
        names = {read.dataset.name.rpartition("/")[2] for read in inputs if read.dataset is not None}
        self._reported.setdefault(table.name, set()).update(names - {table.name})
        more = {"inputs": tuple(inputs), "outputs": (output,), "job": JobName(name=f"{table.name}.{job}")}
        self._producer.emit(self._minute, Committed, barrier=self._minute, **more)

    def _lose(self) -> list[Event]:
        """Choose events that are lost."""
        commits = [each for each in self._producer.events if isinstance(each, Committed)]
        lost: list[Event] = []
        kept = list(commits)
        for each in commits:
            others = [one for one in kept if one is not each and _target(one) == _target(each) and one.outputs[0].main]
            known = {read.dataset for one in others for read in one.inputs}
            is_known = bool(others) and {read.dataset for read in each.inputs} <= known
            is_rollback = each.outputs[0].commit_kind is CommitKind.ROLLBACK
            if is_known and not is_rollback and self._random.random() < 0.1:
                kept.remove(each)
                lost.append(each)
        return lost

    def _row(self) -> int:
        self._rows += 1
        return self._rows

    def _label(self) -> int:
        self._labels += 1
        return self._labels

    @property
    def written(self) -> list[Table]:
        return [each for each in self.tables.values() if each.line and each.format is not Format.KAFKA]

    def choose(self) -> dict[str, Version]:
        """Versions of two or three tables; mostly new ones. None if fewer than two were written."""
        names = self._random.sample(self.written, min(len(self.written), self._random.choice([2, 2, 3])))
        return {each.name: each.line[-min(self._random.choice([1, 1, 2, 3]), len(each.line))] for each in names}

    def are_consistent(self, chosen: Mapping[str, Version]) -> bool:
        """Say so by the rows."""
        found = [_families(name, version) for name, version in chosen.items()]
        return all(
            _are_alike(one[shared], other[shared])
            for place, one in enumerate(found)
            for other in found[:place]
            for shared in one.keys() & other.keys()
            if any(each.rows for each in one[shared]) and any(each.rows for each in other[shared])
        )


def _target(event: Committed) -> tuple[object, object]:
    return (event.outputs[0].dataset, event.outputs[0].generation)


def _families(name: str, version: Version) -> dict[str, list[Copy]]:
    """For each table that rows came from, those that were copied together."""
    found = {name: [Copy(version.own)]}
    for path, each in version.copies.items():
        found.setdefault(path[-1][0], []).append(each)
    return found


def _are_alike(one: Sequence[Copy], other: Sequence[Copy]) -> bool:
    return all(_all_in(*each) for each in ((one, other), (other, one)))


def _all_in(one: Sequence[Copy], other: Sequence[Copy]) -> bool:
    return all(any(each.is_like(some) for some in other) for each in one if each.rows)


@dataclass
class AnswerCounts:
    """How often answers were right."""

    checks: dict[tuple[bool | None, bool], int] = field(default_factory=dict)
    """By verdict, and by what the rows say."""
    aligned: dict[tuple[bool, bool], int] = field(default_factory=dict)
    """By whether versions were found, and whether they are consistent."""

    def __str__(self) -> str:
        total = sum(self.checks.values())
        unknown = self.checks.get((None, True), 0) + self.checks.get((None, False), 0)
        found = self.aligned.get((True, True), 0), self.aligned.get((True, False), 0)
        return (
            f"check {total} times: wrong yes {self.checks.get((True, False), 0)}, right yes "
            f"{self.checks.get((True, True), 0)}, right no {self.checks.get((False, False), 0)}, wrong no "
            f"{self.checks.get((False, True), 0)}, unknown {unknown} ({unknown / max(total, 1):.1%}, of which "
            f"{self.checks.get((None, True), 0)} consistent); align {sum(self.aligned.values())} times: wrong "
            f"{found[1]}, right {found[0]}, none {self.aligned.get((False, False), 0)}"
        )


def ask(connection: Connection, history: History, counts: AnswerCounts) -> bool:
    """Ask `check` and `align` about a history, and count the answers. Return whether there is no wrong yes."""
    chosen = history.choose()
    if len(chosen) < 2:
        return True
    with connection.begin() as transaction:
        store(connection, history.events)
        verdict = _checked(connection, chosen)
        found = _aligned(connection, history, list(chosen))
        transaction.rollback()
    truth = history.are_consistent(chosen)
    _count(counts.checks, (verdict, truth))
    is_right = found is not None and len(found) == len(chosen) and history.are_consistent(found)
    _count(counts.aligned, (found is not None, is_right))
    return (truth or verdict is not True) and (found is None or is_right)


def _count(counts: dict[Any, int], key: object) -> None:
    counts[key] = counts.get(key, 0) + 1


def _checked(connection: Connection, chosen: Mapping[str, Version]) -> bool | None:
    numbers: dict[str, int | None] = {f"lake.db.{name}": each.number for name, each in chosen.items()}
    try:
        return check(connection, numbers).is_consistent
    except ConfigurationError:  # the event was lost that would tell of that version
        return None


def _aligned(connection: Connection, history: History, names: Sequence[str]) -> dict[str, Version] | None:
    """Versions of tables that are said to belong together; those are missing that the table doesn't have."""
    try:
        answer = align(connection, [f"lake.db.{name}" for name in names])
    except (NoAlignmentError, ConfigurationError):
        return None
    found: dict[str, Version] = {}
    for name, row in zip(names, answer.rows, strict=True):
        table = history.tables[name]
        if row.table.generation == str(table.generation):
            found.update((name, each) for each in table.line if each.number == row.table.snapshot)
    return found


def lines(history: History) -> Iterator[str]:
    """Yield what happened, for a person."""
    gone = {id(each) for each in history.lost}
    for each in sorted([*history.events, *history.lost], key=lambda one: one.time):
        if not isinstance(each, Committed):
            fields = each.model_dump(
                exclude_defaults=True, include={"branch", "snapshot", "before", "dataset", "of_job"}
            )
            yield f"{each.kind} {fields}"
            continue
        [output] = each.outputs
        name = str(output.table).rpartition(".")[2]
        reads = ", ".join(_text_of(read) for read in each.inputs)
        held = "" if output.main else " held back"
        lost = "lost: " if id(each) in gone else ""
        branch = "" if output.branch is None else f"[{output.branch}]"
        name = name if output.table is not None else f"topic {output.dataset}"
        where = f"{name}{branch}@{output.snapshot} (g{output.generation}, on {output.parent}, {output.format.value})"
        yield f"{lost}{where} {output.commit_kind.value} {output.replaced.value}{held} <- {reads} [{each.job}]"


def _text_of(read: Input) -> str:
    if read.dataset is None:
        return str(read.opaque)
    since = "" if read.since is None else f"{read.since.snapshot or read.since.version}.."
    branch = "" if read.branch is None else f"[{read.branch}]"
    return f"{read.dataset.name.rpartition('/')[2]}{branch}@{since}{read.snapshot or read.version}"
