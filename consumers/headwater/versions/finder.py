"""Finds versions that belong together for statements of a Spark driver: `spark.headwater.read.consistent`."""

from __future__ import annotations

import os
import threading
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from sqlalchemy import Connection

from headwater.config import read_config
from headwater.errors import ConfigurationError, HeadwaterError, TerminalError
from headwater.events.clock import micros_of
from headwater.lens.consistent import KEY, FoundVersions, PinnedVersion
from headwater.lineage.client import Lineage
from headwater.lineage.listener.config import JdbcConfig
from headwater.lineage.questions.names import find_dataset
from headwater.lineage.store import StoreOptions, translate_errors
from headwater.versions.alignment import NoAlignmentError
from headwater.versions.answers import AlignedTable, AlignmentAnswer
from headwater.versions.questions import find_alignment
from headwater.versions.table_parts import PartKind, TablePart, find_part, part_of, split_branch
from headwater.versions.version_question import NamedVersion, VersionQuestion, named_version

STORE: Final = "spark.headwater.read.consistent.store"
_LISTENER: Final = "spark.headwater.jdbc."


class LineageFinderFactory:
    """The entry point `lineage`: asks the lineage store."""

    def create(self, configuration: Mapping[str, str]) -> LineageFinder:
        return LineageFinder(store_of(configuration))


def store_of(configuration: Mapping[str, str], environment: Mapping[str, str] = os.environ) -> StoreOptions:
    """Return where the store is: what the key says, else where the listener `jdbc` writes, else the environment."""
    url = configuration.get(STORE)
    if url is None:
        listener = {key[len(_LISTENER) :]: text for key, text in configuration.items() if key.startswith(_LISTENER)}
        if "url" in listener:
            return read_config(JdbcConfig, listener, shown=_LISTENER).store_options()
    options = StoreOptions.from_environment(environment, url)
    if options.jdbc_url is None:
        raise ConfigurationError(f"it isn't known where the lineage store is: set {STORE} to its URL")
    return options


class LineageFinder:
    """Asks the store, which is opened by the first question and again after it was away."""

    def __init__(self, options: StoreOptions) -> None:
        self._options = options
        self._lock = threading.Lock()
        self._lineage: Lineage | None = None

    def find(self, tables: Sequence[str]) -> FoundVersions:
        lineage = self._opened()
        with translate_errors(lineage.store.target.words), lineage.store.engine.connect() as connection:
            return find_versions(connection, tables)

    def close(self) -> None:
        with self._lock:
            lineage, self._lineage = self._lineage, None
        if lineage is not None:
            lineage.close()

    def _opened(self) -> Lineage:
        with self._lock:
            if self._lineage is None:
                self._lineage = Lineage.open(self._options)
            return self._lineage


def find_versions(connection: Connection, tables: Sequence[str]) -> FoundVersions:
    """Align these tables. Those that can't be aligned are named, and the others are aligned without them."""
    try:
        return _pinned(tables, find_alignment(connection, [named_version(connection, table) for table in tables]))
    except NoAlignmentError as e:
        return FoundVersions(reasons=(str(e),))
    except TerminalError:
        return _without_strangers(connection, tables)


def _without_strangers(connection: Connection, tables: Sequence[str]) -> FoundVersions:
    """Find out which tables have no versions or several names, and align the rest."""
    by_line: dict[_Line, list[str]] = {}
    reasons: list[str] = []
    question = VersionQuestion(connection, None)
    for table in tables:
        found = _look_up(question, table, by_line)
        if isinstance(found, str):
            reasons.append(f"{table}: {found}")
        else:
            by_line.setdefault(found, []).append(table)
    for line in [line for line in by_line if _is_beside_its_table(line, by_line)]:
        reasons += [f"{name}: {_no_version_of(name, part)}" for name in by_line.pop(line) if (part := part_of(name))]
    if len(by_line) < 2:
        return FoundVersions(reasons=tuple(reasons))
    try:
        aligned = find_alignment(connection, [named_version(connection, names[0]) for names in by_line.values()])
    except NoAlignmentError as e:
        return FoundVersions(reasons=(*reasons, str(e)))
    first = _pinned([names[0] for names in by_line.values()], aligned)
    pins = [_named(pin, name) for pin, names in zip(first.pins, by_line.values(), strict=False) for name in names]
    return FoundVersions(tuple(pins), (*reasons, *first.reasons), first.cut, first.notes)


_Line = tuple[bytes, str | None]
"""A table's key, and the branch of it; none for main."""


def _is_beside_its_table(line: _Line, lines: Collection[_Line]) -> bool:
    """Return whether it is a branch, and the table itself or another branch of it is read too."""
    dataset, branch = line
    return branch is not None and any(one == dataset and other != branch for one, other in lines)


def _look_up(question: VersionQuestion, table: str, known: Collection[_Line]) -> _Line | str:
    """Return what a name means, or why it can't be aligned."""
    try:
        part = find_part(question.connection, table)
        if part is not None and part.kind is not PartKind.BRANCH:
            return _no_version_of(table, part)
        named, branch = split_branch(question.connection, table)
        dataset = find_dataset(question.connection, named)
        if (dataset.key, branch) not in known:
            question.starts([NamedVersion(dataset, branch=branch)])
    except HeadwaterError as e:
        return str(e)
    return dataset.key, branch


def _no_version_of(name: str, part: TablePart) -> str:
    """Say why a part of a table has no version that goes with those of other tables, and how it is read."""
    unpinned = f"SET {KEY}.allowed = {name} reads it as it is now, SET {KEY} = false all tables"
    if part.kind is PartKind.BRANCH:
        return f"it is {part.text}, which is read too, and one table has one version: {unpinned}"
    if part.kind is PartKind.METADATA:
        return f"it is {part.text}, which can't be pinned: {unpinned}"
    travel = "TIMESTAMP" if part.kind is PartKind.TIME else "VERSION"
    return f"it is {part.text}: write {part.table} {travel} AS OF …, which is read as it is written"


def _pinned(tables: Sequence[str], found: AlignmentAnswer) -> FoundVersions:
    pins = tuple(_pin(name, row) for name, row in zip(tables, found.rows, strict=True))
    lacking = tuple(
        f"{name} has no number that it could be read at"
        for name, row in zip(tables, found.rows, strict=True)
        if row.table.snapshot is None
    )
    notes = tuple(f"{limit.about}: {limit.detail or limit.why.value}" for limit in found.limits)
    cut = tuple(table.label for table in found.cut)
    return FoundVersions(() if lacking else pins, lacking, cut, notes)


def _pin(name: str, row: AlignedTable) -> PinnedVersion:
    table = row.table
    made_at = None if table.made_at is None else micros_of(table.made_at)
    return PinnedVersion(name, str(table.snapshot), table.generation, made_at, row.steps_behind)


def _named(pin: PinnedVersion, name: str) -> PinnedVersion:
    return PinnedVersion(name, pin.version, pin.generation, pin.made_at, pin.steps_behind)
