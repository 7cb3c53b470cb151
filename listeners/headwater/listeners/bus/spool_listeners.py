"""Whom a spool is kept for, and how somebody who knows better changes that."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from difflib import get_close_matches
from pathlib import Path

from headwater.errors import TerminalError
from headwater.journal import Files, Journal, JournalOptions, LockedError, remove_journal
from headwater.journal.cursor import forget_position, move_position
from headwater.journal.files import OS_FILES
from headwater.journal.position import committed_positions
from headwater.listeners.bus.producer_progress import PROGRESS_CURSOR
from headwater.listeners.bus.spool_manifest import read_manifest, replace_listener


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
