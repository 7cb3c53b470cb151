"""The tables of a roll-back: which have something of what is lost, and the newest snapshot of each that hasn't."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from sqlalchemy import Connection, select

from headwater.errors import ConfigurationError
from headwater.events.clock import moment_of
from headwater.lineage.questions.answers import AnswerLimit, LimitReason
from headwater.lineage.questions.commit_facts import Amount, amounts_written, total
from headwater.lineage.questions.cycles import number_components
from headwater.lineage.questions.datasets import Dataset, load_datasets
from headwater.lineage.questions.names import find
from headwater.lineage.questions.snapshots import format_job_key
from headwater.lineage.questions.traversal.snapshot_writers import SnapshotRef
from headwater.lineage.questions.uses import ReachableTables, find_reachable_tables
from headwater.lineage.rows import tables as t
from headwater.lineage.sql.key_lookup import select_by_keys
from headwater.lineage.sql.tables import table_of
from headwater.plugins import load_all
from headwater.versions.branches.format_branches import GROUP
from headwater.versions.model import Doubt, TableContents
from headwater.versions.questions import LOOK_BACK, VersionLines
from headwater.versions.rollback.lost_commits import LostCommits, LostContents, find_lost, identities_of
from headwater.versions.rollback.model import RollbackVerdict, RolledTable
from headwater.versions.version_question import NamedVersion, VersionQuestion

_DEPTH: Final = 100
_NOTHING: Final = Amount()


@dataclass
class RollbackCandidate:
    """A table of a roll-back, while the plan is made."""

    key: bytes
    dataset: Dataset
    is_source: bool = False
    head: SnapshotRef | None = None
    format: str | None = None
    verdict: RollbackVerdict = RollbackVerdict.STAYS
    target: int | None = None
    has_source: bool = True
    """Whether it contains anything of the tables that the user named, or is one."""
    lost: LostCommits = field(default_factory=LostCommits)
    amount: Amount = _NOTHING
    problems: list[str] = field(default_factory=list)

    @property
    def newest(self) -> int | None:
        return None if self.head is None else self.head.snapshot

    def go_back(self, snapshot: int) -> None:
        self.verdict, self.target = RollbackVerdict.BACK, snapshot

    def stick(self, problem: str) -> None:
        self.verdict, self.target = RollbackVerdict.STUCK, None
        self.problems.append(problem)


class TableFinder:
    """Finds what becomes of the tables that a user named, and of all that were made from them."""

    def __init__(self, connection: Connection, sources: Mapping[str, int], *, is_chain: bool) -> None:
        self._connection: Final = connection
        self._question: Final = VersionQuestion(connection, None)
        self.limits: list[AnswerLimit] = []
        self.sources: Final = self._find_sources(sources)
        around = self._find_around()
        self.made: Final = self._find_made(around)
        self._find_targets()
        self.order: Final = [*self.sources, *self._sort(around)]
        for table in self.order:
            self._check_format(table)
        for table in self.made if not is_chain else ():
            if table.verdict is not RollbackVerdict.STAYS:
                table.verdict = RollbackVerdict.LEFT

    @property
    def first_lost_at(self) -> datetime | None:
        times = [write.at for table in self.order for write in table.lost.writes]
        return moment_of(min(times)) if times else None

    def _find_sources(self, wanted: Mapping[str, int]) -> list[RollbackCandidate]:
        named = [(find(self._connection, name).dataset, snapshot) for name, snapshot in wanted.items()]
        question, reader = self._question, self._question.reader
        heads = question.starts([NamedVersion(dataset) for dataset, _ in named])
        targets = question.starts([NamedVersion(dataset, snapshot) for dataset, snapshot in named])
        question.refuse_unseen(*targets)
        question.refuse_dropped(targets)
        keys = identities_of(reader, [*heads, *targets])[: len(named)]
        names = load_datasets(self._connection, keys)
        found = []
        for key, head, target in zip(keys, heads, targets, strict=True):
            table = RollbackCandidate(key, names[key], True, head, target=target.snapshot)
            table.lost = find_lost(reader, head, target)
            if table.lost.problem is not None:
                label = table.dataset.label
                raise ConfigurationError(f"{label} can't go back to {target.snapshot}: {table.lost.problem}")
            table.verdict = RollbackVerdict.BACK if table.lost.numbers else RollbackVerdict.STAYS
            found.append(table)
        return found

    def _find_around(self) -> list[ReachableTables]:
        found = [find_reachable_tables(self._connection, each.key, up=False, depth=_DEPTH) for each in self.sources]
        for around, table in zip(found, self.sources, strict=True):
            if around.is_cut:
                detail = "it is made into more tables than are looked at"
                self.limits.append(AnswerLimit(LimitReason.CUT, table.dataset.label, detail))
        return found

    def _find_made(self, around: Collection[ReachableTables]) -> list[RollbackCandidate]:
        """Return the tables that were ever made from the sources, but views, and what was dropped."""
        keys = {key for each in around for key in each.depths.keys() - each.views} - {each.key for each in self.sources}
        gone = self._dropped(keys)
        names = load_datasets(self._connection, keys)
        return [RollbackCandidate(key, names[key]) for key in sorted(keys - gone, key=lambda key: names[key].label)]

    def _dropped(self, keys: Collection[bytes]) -> set[bytes]:
        """Return the tables of which the newest generation was dropped."""
        row = table_of(t.GENERATION).c
        chosen = select(row.dataset, row.last, row.deleted)
        ended: dict[bytes, list[bool]] = {}
        for each in select_by_keys(self._connection, chosen, row.dataset, keys):
            ended.setdefault(bytes(each.dataset), []).append(each.deleted >= each.last)
        return {key for key, found in ended.items() if all(found)}

    def _find_targets(self) -> None:
        """Find for each table that was made from the sources the newest snapshot that has nothing of what is lost."""
        lost = {table.key: table.lost for table in self.sources}
        contents = LostContents(lost, {table.key for table in self.made})
        versioned = []
        for table in self.made:
            try:
                [table.head] = self._question.starts([NamedVersion(table.dataset)])
            except ConfigurationError:
                if any(each.numbers for each in lost.values()):
                    table.stick("it has no snapshots: what it has of what is rolled back stays in it")
                continue
            versioned.append(table)
        heads = [table.head for table in versioned if table.head is not None]
        lines = VersionLines(self._question.reader, [(head, LOOK_BACK) for head in heads])
        for number, table in enumerate(versioned):
            self._find_target(table, newest_without(lines, number, contents), contents)

    def _find_target(
        self, table: RollbackCandidate, states: tuple[TableContents | None, int], contents: LostContents
    ) -> None:
        state, steps = states
        if state is None:
            table.stick(f"none of its {steps:,} known snapshots is without what is rolled back: drop it, or empty it")
        elif doubts := contents.doubts(state):
            at = state.version.snapshot
            what = f"whether its snapshot {at} has anything of what is rolled back isn't known"
            table.stick(f"{what}: {self._text(doubts)}")
        elif steps:
            assert state.version.snapshot is not None  # noqa: S101 - lines are of snapshots
            table.go_back(state.version.snapshot)
        else:
            table.target, table.has_source = table.newest, contents.is_made_from_sources(state)

    def _text(self, doubts: Collection[Doubt]) -> str:
        names = load_datasets(self._connection, {doubt.dataset for doubt in doubts})
        parts = [
            f"{names[each.dataset].label}{'' if each.snapshot is None else f'@{each.snapshot}'} {each.detail}"
            for each in doubts
        ]
        return "; ".join(dict.fromkeys(parts))

    def _sort(self, around: Collection[ReachableTables]) -> list[RollbackCandidate]:
        """Return the tables that were made, each behind all that it is made from."""
        by_key = {table.key: table for table in self.made}
        edges = sorted({(link.source, link.target) for each in around for link in each.links})
        component = number_components(edges)
        depth: dict[int, int] = {}
        for key in sorted(component, key=lambda key: -component[key]):
            mine = component[key]
            before = [component[source] for source, target in edges if component[target] == mine]
            depth[mine] = max((depth.get(one, 0) + 1 for one in before if one != mine), default=0)
        return sorted(
            by_key.values(), key=lambda table: (depth.get(component.get(table.key, 0), 0), table.dataset.label)
        )

    def _check_format(self, table: RollbackCandidate) -> None:
        """Let a table stay that can't be rolled back by its format."""
        if table.head is not None and (write := self._question.reader.histories.step_to(table.head)):
            table.format = write[0].format
        if table.verdict is RollbackVerdict.BACK and (table.format or "").lower() not in load_all(GROUP):
            table.stick(f"tables of {table.format or 'an unknown format'} aren't rolled back by headwater")

    def look(self, problem: Callable[[str, int], str | None]) -> None:
        """Let tables stay of which a snapshot has expired. A ConfigurationError if the user named one."""
        for table in self.order:
            if table.verdict is not RollbackVerdict.BACK or table.target is None:
                continue
            label, target = table.dataset.label, table.target
            if (reason := problem(label, target)) is None:
                continue
            if table.is_source:
                raise ConfigurationError(
                    f"{label} can't go back to {target}, so nothing was done: {reason}. Name a snapshot that is still "
                    f"there, or correct the rows: headwater correct plan {label}@SNAPSHOT"
                )
            table.stick(
                f"{target} is its newest snapshot without what is rolled back, and it can't go back to that: {reason}. "
                "Let its job make it anew, or drop it"
            )

    def count_lost(self) -> None:
        """Find what each table loses that goes back."""
        reader = self._question.reader
        for table in self.made:
            if table.verdict is RollbackVerdict.BACK and table.head is not None and table.target is not None:
                table.lost = find_lost(reader, table.head, table.head._replace(snapshot=table.target))
                if table.lost.problem is not None:
                    table.stick(table.lost.problem)
        writes = [write for table in self.order for write in table.lost.writes]
        commits = {(write.commit_id, write.barrier) for write in writes if write.commit_id is not None}
        amounts = amounts_written(self._connection, commits)
        for table in self.order:
            table.amount = total(amounts[write.id] for write in table.lost.writes if write.id in amounts)
            table.amount += Amount(unknown=len(table.lost.unreported))

    def planned(self, table: RollbackCandidate) -> RolledTable:
        is_back = table.verdict is RollbackVerdict.BACK
        jobs = {format_job_key(write.job) for write in table.lost.writes}
        left = table.verdict is RollbackVerdict.LEFT and table.target is not None
        return RolledTable(
            table=table.dataset.label,
            format=table.format,
            verdict=table.verdict,
            is_source=table.is_source,
            generation=None if table.head is None else table.head.generation,
            newest=table.newest,
            target=table.target,
            commits=len(table.lost.numbers) if is_back else 0,
            lost=table.amount if is_back else Amount(),
            unreported=len(table.lost.unreported) if is_back else 0,
            jobs=tuple(sorted(job for job in jobs if job is not None)) if is_back else (),
            problems=tuple(table.problems),
            notes=(f"{table.target} is its newest snapshot without it; --chain takes it back, too",) if left else (),
        )


def newest_without(lines: VersionLines, number: int, contents: LostContents) -> tuple[TableContents | None, int]:
    """Return the newest version of a table that has nothing of what is lost, and how many it is behind; None if it has
    no such version."""
    steps = 0
    for state in lines.states(number, None):
        if not contents.has_any(state):
            return state, steps
        steps += 1
    return None, steps
