"""Retries and drops dead letters. A retry helps once a newer version knows the event, or the database accepts its
values.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import partial

from headwater.consumers.sources import BusRecord
from headwater.consumers.writer.record_reader import RecordReader
from headwater.consumers.writer.routes import MAIN_STORE, SHARED_KINDS, Routes
from headwater.errors import TerminalError
from headwater.events.avro import Codec
from headwater.lineage.bulk import BulkLineageMeta, DeadLetter, DeadLetterState, EventRows
from headwater.lineage.bulk.dead_letters import DIRECT_SOURCE


class UnknownDeadLetterError(TerminalError):
    """There is no dead letter with this id."""


def get_dead_letter(store: BulkLineageMeta, name: str) -> DeadLetter:
    return next(iter(_load({MAIN_STORE: store}, name).values()))


def retry_dead_letter(stores: Mapping[str, BulkLineageMeta], name: str) -> str | None:
    """Retry a dead letter. Return None if it is stored now, else the reason why not.

    `stores` are the main store and those of catalogs, as a writer has them. Whichever store has the letter, the event
    goes to all stores that a writer would send it to.
    """
    letters = _load(stores, name)
    home, letter = next(iter(letters.items()))
    if letter.source == DIRECT_SOURCE:  # its listener writes to this store only
        words = _retry({home: stores[home]}, {home}, letter)
    else:
        words = _retry(stores, _places(stores, letter), letter)
    for each in letters:
        stores[each].mark_dead_letter(name, DeadLetterState.STORED if words is None else DeadLetterState.WAITING, words)
    return words


def drop_dead_letter(store: BulkLineageMeta, name: str) -> None:
    """Mark a dead letter as dropped. It stays in the table and can still be retried."""
    get_dead_letter(store, name)
    store.mark_dead_letter(name, DeadLetterState.DROPPED)


def _load(stores: Mapping[str, BulkLineageMeta], name: str) -> dict[str, DeadLetter]:
    """Load the letter from each store that has it: several stores can have refused one event."""
    asked = {place: store.dead_letter(name) for place, store in stores.items()} if _is_name(name) else {}
    letters = {place: letter for place, letter in asked.items() if letter is not None}
    if not letters:
        raise UnknownDeadLetterError(
            f"there is no dead letter {name}: `headwater dead-letter list --all` shows those there are"
        )
    return letters


def _places(stores: Mapping[str, BulkLineageMeta], letter: DeadLetter) -> frozenset[str]:
    return Routes({name: name for name in stores if name != MAIN_STORE}, Codec()).of_data(letter.data)


def _retry(stores: Mapping[str, BulkLineageMeta], places: Collection[str], letter: DeadLetter) -> str | None:
    """Store the event. All stores record that it arrived, even if its other rows don't belong to them; otherwise they
    would report it as missing."""
    read = RecordReader(letter.source, letter.topic_name, most_invalid=0).read([_to_bus_record(letter)])
    errors = [letter.error for letter in read.dead_letters]
    for name, store in stores.items():
        rows = read.rows if name in places else [row for row in read.rows if row.kind in SHARED_KINDS]
        merged = store.merge_events([EventRows(rows, partial(_with_error, letter))])
        errors += [f"{name}: {each.error}" if name else each.error for each in merged.refused]
    return errors[0] if errors else None


def _to_bus_record(letter: DeadLetter) -> BusRecord:
    """Restore the record as it came from the bus."""
    return BusRecord(letter.data, letter.partition, letter.position, letter.append_time, letter.key, letter.headers)


def _with_error(letter: DeadLetter, words: str) -> DeadLetter:
    return replace(letter, error=words)


def _is_name(name: str) -> bool:
    return len(name) == 32 and all(character in "0123456789abcdef" for character in name)
