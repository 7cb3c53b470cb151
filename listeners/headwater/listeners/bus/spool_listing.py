"""Lists spools for people: their driver, which listeners lack records, and what happens next.

Listing changes nothing and reads at most one segment of each spool.

Whom a spool is kept for, and how somebody who knows better changes that.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from difflib import get_close_matches
from enum import Enum
from pathlib import Path

from headwater.errors import TerminalError
from headwater.events.clock import moment_of
from headwater.journal import Files, Journal, JournalOptions, JournalReader, LockedError, StorageError, remove_journal
from headwater.journal.cursor import forget_position, move_position
from headwater.journal.files import OS_FILES, read_file
from headwater.journal.lock import describe_holder, is_locked, pid_of_holder
from headwater.journal.position import committed_positions, damaged_positions
from headwater.journal.segment import HEADER_SIZE, list_bases, segment_path, unpack_header
from headwater.journal.writer import LOCK_NAME
from headwater.listeners.bus.producer_progress import PROGRESS_CURSOR, is_progress_damaged
from headwater.listeners.bus.spool_manifest import SpoolManifest, read_manifest, replace_listener


def rename_listener(spool: Path, old: str, new: str) -> None:
    """What `old` hasn't got of a dead driver's spool is `new`'s. A LockedError where its driver runs."""
    with _open_dead_spool(spool):
        move_position(OS_FILES, spool, old, new)
        _change_manifest(spool, old, new)


def drop_listener(spool: Path, name: str) -> bool:
    """Nobody of this name gets anything of a dead driver's spool any more; whether it went, being kept for nobody
    else. A LockedError where its driver runs."""
    with _open_dead_spool(spool):
        forget_position(OS_FILES, spool, name)
        _change_manifest(spool, name, None)
    if waiting_listeners(spool):
        return False
    remove_journal(spool)
    return True


def waiting_listeners(spool: Path, files: Files = OS_FILES) -> set[str]:
    """The listeners that a spool is kept for, as far as that can be known."""
    return {*committed_positions(files, spool), *read_manifest(files, spool).families} - {PROGRESS_CURSOR}


def describe_stranded(spools: Sequence[Path], name: str, configured: Collection[str]) -> str:
    """That nobody gets what was kept for this listener, and what can be done about it."""
    other = next(iter(get_close_matches(name, configured, n=1, cutoff=0.0)), "OTHER")
    where = f"{spools[0]} holds" if len(spools) == 1 else f"{len(spools)} spools in {spools[0].parent} hold"
    return (
        f"{where} events for the listener {name}, which could not be made, and none is called so now "
        f"(there is {', '.join(sorted(configured)) or 'none'}): `headwater spool rename {name} {other}` gives them to "
        f"another one, `headwater spool drop {name}` lets them go; until then they stay, as long as there is room"
    )


def _open_dead_spool(spool: Path) -> Journal:
    """Nobody ships it, and its driver is dead, as long as it is open here."""
    try:
        return Journal.open(spool, JournalOptions(max_bytes=None, reserve_bytes=0))
    except LockedError as e:
        raise LockedError(f"{e}: wait until its driver has ended, or until it is shipped") from e


def _change_manifest(spool: Path, old: str, new: str | None) -> None:
    try:
        replace_listener(OS_FILES, spool, old, new)
    except (OSError, ValueError, TypeError, AttributeError) as e:
        raise TerminalError(f"{spool / 'spool.json'} can't be changed: {type(e).__name__}: {e}") from e


class SpoolStatus(str, Enum):
    """Who holds a spool now."""

    LIVE = "live"
    SHIPPED = "being shipped"
    ABANDONED = "left"


@dataclass(frozen=True)
class ListenerBacklog:
    """What a listener hasn't acknowledged."""

    records: int
    """At most: those of other families are among them."""
    oldest: datetime | None
    """When the first of them was appended."""
    dropped: int = 0
    """So many before those went because the spool reached its limit, and it doesn't know yet."""
    has_failed: bool = False


@dataclass(frozen=True)
class SpoolSummary:
    """One spool, as it is now."""

    directory: Path
    manifest: SpoolManifest
    status: SpoolStatus
    holder: str
    since: datetime | None
    size: int
    records: int
    waiting: Mapping[str, ListenerBacklog]
    faults: tuple[str, ...]
    """What can be seen at once of what is damaged in it."""

    @property
    def is_held(self) -> bool:
        """Its driver runs, or somebody ships it just now."""
        return self.status is not SpoolStatus.ABANDONED

    @property
    def fate(self) -> str:
        """What happens to it if nobody intervenes."""
        if self.status is SpoolStatus.LIVE:
            return "its driver delivers it"
        if self.status is SpoolStatus.SHIPPED:
            return f"{self.holder} delivers it"
        behind = [name for name, counts in self.waiting.items() if counts.records]
        if not behind:
            return "goes when somebody looks: all of it is delivered"
        unmade = [name for name in behind if self.waiting[name].has_failed]
        if unmade:
            return f"waits for a driver with {', '.join(behind)}; `rename` or `drop` {', '.join(unmade)} if none is"
        return f"the next driver here with {', '.join(behind)} delivers it, or `headwater spool ship`"


def list_spools(places: Collection[Path]) -> list[SpoolSummary]:
    """All spools right under these directories, by what they are called."""
    found = [spool for place in dict.fromkeys(places) if place.is_dir() for spool in place.iterdir() if spool.is_dir()]
    spools = [spool for spool in sorted(found) if list_bases(OS_FILES, spool)]
    return [summarize_spool(spool) for spool in spools]


def summarize_spool(spool: Path) -> SpoolSummary:
    """A StorageError where it can't be read; one that goes in this moment may be listed as empty."""
    manifest = read_manifest(OS_FILES, spool)
    reader = JournalReader.open(spool)
    first, end = reader.first_offset(), reader.next_offset()
    positions = committed_positions(OS_FILES, spool)
    waiting = {
        name: _backlog(reader, positions.get(name, first), first, end, has_failed=name in manifest.failed_listeners)
        for name in sorted(waiting_listeners(spool))
    }
    return SpoolSummary(
        directory=spool,
        manifest=manifest,
        status=_spool_status(spool, manifest),
        holder=describe_holder(spool / LOCK_NAME),
        since=_begin_time(spool, manifest, first),
        size=size_of(spool),
        records=end - first,
        waiting=waiting,
        faults=tuple(_find_faults(spool, manifest)),
    )


def size_of(spool: Path) -> int:
    """What its files take; those that go in this moment take nothing."""
    total = 0
    for path in spool.glob("*"):
        try:
            total += path.stat().st_size if path.is_file() else 0
        except FileNotFoundError:  # noqa: PERF203 - a driver drops segments while we look
            continue
    return total


def _backlog(reader: JournalReader, position: int, first: int, end: int, *, has_failed: bool) -> ListenerBacklog:
    begin = max(first, position)
    return ListenerBacklog(max(0, end - begin), _append_time(reader, begin), max(0, first - position), has_failed)


def _append_time(reader: JournalReader, offset: int) -> datetime | None:
    with reader.tail(offset) as tail:
        try:
            records = tail.read(1).records
        except StorageError:
            return None
    return moment_of(records[0].time) if records else None


def _spool_status(spool: Path, manifest: SpoolManifest) -> SpoolStatus:
    lock = spool / LOCK_NAME
    if not is_locked(lock):
        return SpoolStatus.ABANDONED
    return SpoolStatus.LIVE if manifest.pid in {0, pid_of_holder(lock)} else SpoolStatus.SHIPPED


def _begin_time(spool: Path, manifest: SpoolManifest, first: int) -> datetime | None:
    try:
        return datetime.fromisoformat(manifest.since)
    except ValueError:
        header = unpack_header(read_file(OS_FILES, path := segment_path(spool, first), HEADER_SIZE) or b"", path)
        return moment_of(header.created) if header else None


def _find_faults(spool: Path, manifest: SpoolManifest) -> list[str]:
    damage = [f"{path.name} is damaged" for path in damaged_positions(OS_FILES, spool)]
    damage += [] if manifest.producer else ["spool.json can't be read"]
    damage += ["progress.json can't be read"] if is_progress_damaged(OS_FILES, spool) else []
    return damage
