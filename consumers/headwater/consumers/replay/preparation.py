"""What has to hold before a replay begins: a live store that this version knows, the same sources as before, and no
hole in what they have.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, NamedTuple

from sqlalchemy import Engine

from headwater.consumers.replay.filling import ReplaySettings
from headwater.consumers.replay.ranges import BusRange, Positions, RangeSource
from headwater.consumers.sources import OffsetGap
from headwater.consumers.writer.offsets import gap_rows
from headwater.errors import ConfigurationError, TerminalError
from headwater.events.health import GapReason
from headwater.lineage.bulk import BulkLineageMeta, BusPartition, WriteBatch
from headwater.lineage.bulk.positions import select_groups, select_offsets
from headwater.lineage.replacement.areas import Area, count_rows, has_area
from headwater.lineage.replacement.state import read_state, write_state
from headwater.lineage.sql.errors import StoreSchemaError, translate_errors
from headwater.lineage.store import Store, StoreOptions, open_store
from headwater.lineage.store.creation import SchemaState, inspect_schema
from headwater.lineage.store.engines import open_engine
from headwater.lineage.store.migrations import MigrationHistory

_SOURCES: Final = "sources"
_MOST_NAMED: Final = 8


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


class LiveState(NamedTuple):
    """What the live store has when a replay begins."""

    offsets: Positions
    is_new: bool
    """Whether it has no row yet."""


class MissingOffsets(NamedTuple):
    """Offsets of a partition that no source has: a replay would lose them, or leave a gap."""

    partition: BusPartition
    first: int
    end: int


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
    group = settings.group
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
    mine = f"{' '.join(addresses)}{until} (group {settings.group})"
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
    gaps = [OffsetGap(*each, GapReason.LOG_EXPIRED) for each in missing]
    rows = [row for gap in gaps for row in gap_rows(gap, names.get(gap.partition.topic, ""))]
    if rows:
        fresh.merge(WriteBatch(rows=rows))


def find_missing_offsets(
    sources: Iterable[Mapping[BusPartition, BusRange]], start: Positions, live: Positions
) -> list[MissingOffsets]:
    """Return the offsets between and before sources that are read one after the other, and before where the live store
    is.

    `start` are the offsets up to which everything is there already, `live` those that the live store has read.
    """
    at, missing = dict(start), list[MissingOffsets]()
    ends = {partition: BusRange(end, end) for partition, end in live.items()}
    for ranges in (*sources, ends):
        for partition, (first, end) in sorted(ranges.items()):
            here = at.get(partition, 0)
            if first > here:
                missing.append(MissingOffsets(partition, here, first))
            at[partition] = max(here, end)
    return missing


def describe_missing_offsets(missing: Sequence[MissingOffsets], names: Mapping[str, str]) -> str:
    """Return missing offsets in words. `names` are the names of topics by their ids."""
    words = [_words(each, names) for each in missing[:_MOST_NAMED]]
    more = len(missing) - len(words)
    return "; ".join(words) + (f"; and {more} more" if more else "")


def _words(missing: MissingOffsets, names: Mapping[str, str]) -> str:
    where = missing.partition
    topic = names.get(where.topic)
    name = topic if topic is not None else f"{where.topic} of cluster {where.cluster}, which no source is"
    return f"offsets {missing.first} to {missing.end - 1} of partition {where.number} of {name}"
