"""The dead letters of writers and of drivers: lists, retries and drops them.

A retry helps once a newer version knows the event, or the database accepts its values. A letter that is stored then is
gone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from typing import Final

from headwater.consumers.sources import BusRecord
from headwater.consumers.writer.record_reader import RecordReader
from headwater.consumers.writer.routes import MAIN_STORE, SHARED_KINDS, Routes
from headwater.errors import TerminalError
from headwater.events.avro import Codec
from headwater.events.keys import KIND
from headwater.journal import DeadLetterLog, JournalRecord
from headwater.journal.dead_letters import WHY
from headwater.lineage.bulk import (
    BulkLineageMeta,
    BusPartition,
    DeadLetter,
    DeadLetterReason,
    DeadLetterState,
    WriteBatch,
)
from headwater.lineage.bulk.dead_letters import DIRECT_SOURCE
from headwater.lineage.sql.errors import StoreDataError

DRIVER: Final = "driver"
"""The source of letters of a driver's listeners."""


class UnknownDeadLetterError(TerminalError):
    """There is no dead letter with this id."""

    def __init__(self, name: str) -> None:
        super().__init__(f"there is no dead letter {name}: `headwater dead-letter list --all` shows those there are")


class StoredLetters:
    """The letters in a store and in those of catalogs: of a writer, and of drivers' listener `jdbc`."""

    def __init__(self, stores: Mapping[str, BulkLineageMeta]) -> None:
        """`stores` are the main store and those of catalogs, as a writer has them."""
        self._stores = stores

    def letters(self, *, are_dropped_too: bool = False) -> Generator[tuple[str, DeadLetter], None, None]:
        """Yield the letters that wait. One that several stores refused comes once for each."""
        for store in self._stores.values():
            with closing(store.dead_letters(None if are_dropped_too else DeadLetterState.WAITING)) as found:
                yield from found

    def get(self, name: str) -> DeadLetter:
        return next(iter(self._load(name).values()))

    def retry(self, names: Sequence[str]) -> Iterator[tuple[str, str | None]]:
        """Retry letters. Yield the id of each, and None if it is stored now, else the reason why not.

        Whichever store has the letter, the event goes to all stores that a writer would send it to.
        """
        for name in names:
            yield name, self._retry(name)

    def drop(self, names: Sequence[str]) -> None:
        """Mark letters as dropped. They stay in the table, so that they don't come back, and can still be retried."""
        for store in self._stores.values():
            store.mark_dead_letters(names, DeadLetterState.DROPPED)

    def _retry(self, name: str) -> str | None:
        letters = self._load(name)
        home, letter = next(iter(letters.items()))
        if letter.source == DIRECT_SOURCE:  # its listener writes to this store only
            words = _store({home: self._stores[home]}, {home}, letter)
        else:
            words = store_letter(self._stores, letter)
        for place in letters:
            if words is None:
                self._stores[place].remove_dead_letters([name])
            else:
                self._stores[place].mark_dead_letters([name], DeadLetterState.WAITING, words)
        return words

    def _load(self, name: str) -> dict[str, DeadLetter]:
        """Load the letter from each store that has it: several stores can have refused one event."""
        asked = ((place, store.dead_letter(name)) for place, store in self._stores.items())
        letters = {place: letter for place, letter in asked if letter is not None}
        if not letters:
            raise UnknownDeadLetterError(name)
        return letters


class LoggedLetters:
    """The letters of drivers' listeners, in local logs beside the spools. A retry stores them, as a writer does."""

    def __init__(
        self, logs: Sequence[tuple[str, DeadLetterLog]], stores: Callable[[], Mapping[str, BulkLineageMeta]]
    ) -> None:
        """`logs` are with the names of listeners; `stores` opens those that a retry writes to."""
        self._logs = logs
        self._stores = stores

    def letters(self, *, are_dropped_too: bool = False) -> Generator[tuple[str, DeadLetter], None, None]:  # noqa: ARG002 - none stays
        seen = set[str]()
        for listener, log in self._logs:
            for record in log.letters():
                if (name := _name_of(record)) not in seen:  # a removal that was interrupted leaves some twice
                    seen.add(name)
                    yield name, _letter_of(listener, record)

    def get(self, name: str) -> DeadLetter:
        found = next((letter for each, letter in self.letters() if each == name), None)
        if found is None:
            raise UnknownDeadLetterError(name)
        return found

    def retry(self, names: Sequence[str]) -> Iterator[tuple[str, str | None]]:
        done = set[str]()
        stores = self._stores()
        for name, letter in self._chosen(names).items():
            words = store_letter(stores, letter)
            done.update([name] if words is None else [])
            yield name, words
        self._remove(done)

    def drop(self, names: Sequence[str]) -> None:
        self._remove(set(names))

    def _chosen(self, names: Sequence[str]) -> dict[str, DeadLetter]:
        found = {name: letter for name, letter in self.letters() if name in set(names)}
        for name in names:
            if name not in found:
                raise UnknownDeadLetterError(name)
        return found

    def _remove(self, names: Collection[str]) -> None:
        for _, log in self._logs:
            if names:
                log.remove(lambda record: _name_of(record) in names)


def store_letter(stores: Mapping[str, BulkLineageMeta], letter: DeadLetter) -> str | None:
    """Store the event of a letter where a writer would. Return None if that succeeds, else the reason why not."""
    routes = Routes([name for name in stores if name != MAIN_STORE], Codec())
    return _store(stores, routes.of_data(letter.data), letter)


def _store(stores: Mapping[str, BulkLineageMeta], places: Collection[str], letter: DeadLetter) -> str | None:
    """Store the event. All stores record that it arrived, even if its other rows don't belong to them; otherwise they
    would report it as missing."""
    read = RecordReader(letter.source, letter.topic_name, most_invalid=0).read([_to_bus_record(letter)])
    errors = [letter.error for letter in read.dead_letters]
    for name, store in stores.items():
        rows = read.rows if name in places else [row for row in read.rows if row.kind in SHARED_KINDS]
        try:
            store.merge(WriteBatch(rows))
        except StoreDataError as e:
            errors.append(f"{name}: {e}" if name else str(e))
    return errors[0] if errors else None


def _to_bus_record(letter: DeadLetter) -> BusRecord:
    """Restore the record as it came from the bus."""
    return BusRecord(letter.data, letter.partition, letter.position, letter.append_time, letter.key, letter.headers)


def _name_of(record: JournalRecord) -> str:
    """Return the letter's id: its offset changes when others are removed, and its bytes don't."""
    return hashlib.sha256(record.value).hexdigest()[:32]


def _letter_of(listener: str, record: JournalRecord) -> DeadLetter:
    """Return the letter of a record. No bus had it, so it has no append time, and its rows are always the same."""
    headers = dict(record.headers)
    return DeadLetter(
        DeadLetterReason.REFUSED,
        headers.get(WHY, b"").decode("utf-8", "replace"),
        DRIVER,
        BusPartition(DRIVER, listener),
        record.offset,
        record.value,
        topic_name=listener,
        key=record.key,
        headers=tuple((name, value) for name, value in record.headers if name != WHY),
        kind=headers.get(KIND, b"").decode("utf-8", "replace") or None,
    )
