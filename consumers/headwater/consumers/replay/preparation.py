"""What has to hold before a replay begins: a live store that this version knows, the same sources as before, and no
hole in what they have.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, NamedTuple

from sqlalchemy import Engine

from headwater.consumers.replay.coverage import describe_missing_offsets, find_missing_offsets
from headwater.consumers.replay.filling import PipelineSettings
from headwater.consumers.replay.ranges import Positions, RangeSource
from headwater.consumers.writer.bus_gaps import gap_rows
from headwater.errors import ConfigurationError, TerminalError
from headwater.lineage.bulk import BulkLineageMeta, WriteBatch
from headwater.lineage.bulk.positions import select_groups, select_offsets
from headwater.lineage.replacement.areas import Area, has_area
from headwater.lineage.replacement.copying import count_rows
from headwater.lineage.replacement.state import read_state, write_state
from headwater.lineage.sql.errors import StoreSchemaError, translate_errors
from headwater.lineage.store import Store, StoreOptions, open_store
from headwater.lineage.store.engines import open_engine
from headwater.lineage.store.migrations import MigrationHistory
from headwater.lineage.store.schema_version import SchemaState, inspect_schema

_SOURCES: Final = "sources"


class EventsWouldBeLost(TerminalError):  # noqa: N818 - a refusal
    """The live store has events that the sources don't have. Nothing was changed."""


@dataclass(frozen=True)
class CopiedStore:
    """A store as the first source: its rows are copied, and a bus is read on from its offsets."""

    address: str
    options: StoreOptions

    def offsets(self, group: str) -> Positions:
        with open_store(self.options, readonly=True) as store:
            return store.bulk.offsets(group)


@dataclass(frozen=True)
class ReplaySettings:
    """What a replay does."""

    pipeline: PipelineSettings = field(default_factory=PipelineSettings)
    verify: bool = False
    """Compare only, and remove the fresh tables again."""
    accept_loss: bool = False
    """Go on although events would be lost."""
    purge: bool = False
    """Purge the fresh tables before they are compared, because the live ones were."""
    until: datetime | None = None
    """Read what was appended before this time, for a new store."""
    pause_seconds: float = 10.0
    """How long writers of the live store may have to wait."""


class LiveState(NamedTuple):
    """What the live store has when a replay begins."""

    offsets: Positions
    is_new: bool
    """Whether it has no row yet. Then there is nothing to compare with."""


def check_former(options: StoreOptions) -> None:
    """Raise an error if the tables that the last replay replaced are still there."""
    if has_area(options, Area.FORMER):
        where = options.target.words
        raise ConfigurationError(
            f"the tables that the last replay replaced are still beside the store in {where}: remove them first, by "
            f"`headwater replay --drop-former --store {where}`"
        )


@contextmanager
def live_engine(options: StoreOptions, history: MigrationHistory) -> Generator[Engine]:
    """Open the live store as it is. One of an older version isn't migrated, because it is replaced."""
    target = options.target
    with open_engine(target) as engine:
        with translate_errors(target.words), engine.connect() as connection:
            found = inspect_schema(connection, history)
        if found.standing in {SchemaState.NEWER, SchemaState.UNMARKED}:
            raise StoreSchemaError(
                f"the store in {target.words} is at version {found.version}, which this headwater doesn't know: a "
                "replay by it would lose what a newer one stored; install the newer one here"
            )
        if found.standing is SchemaState.OLDER and engine.dialect.name == "sqlite":
            raise StoreSchemaError(
                f"the file {target.words} is at version {found.version}: bring it to this version by `headwater store "
                f"migrate --store {target.words}`, or replay into another file"
            )
        if found.standing is SchemaState.EMPTY:
            open_store(options).close()
        yield engine


def read_live_state(live: Engine, settings: ReplaySettings) -> LiveState:
    """Read where the live store is, and raise an error if the settings don't fit to that."""
    group = settings.pipeline.group
    with live.connect() as connection:
        state = LiveState(select_offsets(connection, group), not count_rows(connection))
        groups = select_groups(connection)
    if groups and group not in groups:
        raise ConfigurationError(
            f"the store has no offsets of the group {group}, but of {', '.join(sorted(groups))}: name the writer's "
            "group by --group"
        )
    if settings.until is not None and not state.is_new:
        raise ConfigurationError(
            "--until is for a new store: a live one goes on where the replay ends. Name another store by --store"
        )
    return state


def check_same_sources(fresh: Store, addresses: Sequence[str], settings: ReplaySettings) -> None:
    """Go on with a replay of the same sources only: fresh tables know their offsets, and not what they came from."""
    until = "" if settings.until is None else f" until {settings.until.isoformat()}"
    mine = f"{' '.join(addresses)}{until} (group {settings.pipeline.group})"
    known = read_state(fresh.engine).get(_SOURCES)
    if known is not None and known != mine:
        raise ConfigurationError(
            f"a replay from {known} was begun and isn't finished: run that one again, or remove what it wrote by "
            "`headwater replay --abort --store …`"
        )
    write_state(fresh.engine, {_SOURCES: mine})


def check_coverage(
    fresh: BulkLineageMeta, sources: Sequence[RangeSource], start: Positions, live: Positions, *, accept_loss: bool
) -> None:
    """Refuse what would leave a hole, before anything is read. An accepted hole is a gap in the fresh store."""
    ranges = [source.ranges() for source in sources]
    names = {where.topic: source.topic for source, each in zip(sources, ranges, strict=True) for where in each}
    missing = find_missing_offsets(ranges, start, live)
    if missing and not accept_loss:
        raise EventsWouldBeLost(
            f"the sources don't have {describe_missing_offsets(missing, names)}. Name the archive before the topic, by "
            "a --from of its own, or copy the store's rows first, by --from store:URL. With --accept-loss the replay "
            "leaves them out, and the rebuilt store has a gap there"
        )
    rows = [row for each in missing for row in gap_rows(each.gap, names.get(each.partition.topic, ""))]
    if rows:
        fresh.merge(WriteBatch(rows=rows))
