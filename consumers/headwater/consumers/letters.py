"""Events that couldn't be stored are tried again: by a newer version, say, or once a database takes what it refused."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import partial

from headwater.consumers.sources import Taken
from headwater.consumers.writer.reading import Reader
from headwater.consumers.writer.routes import EVERYWHERE, MAIN, Routes
from headwater.errors import TerminalError
from headwater.events.avro import Codec
from headwater.lineage.bulk import BulkLineageMeta, DeadLetter, LetterState, Told
from headwater.lineage.bulk.letters import STRAIGHT


class NoLetterError(TerminalError):
    """There is no dead letter of that name."""


def found(store: BulkLineageMeta, name: str) -> DeadLetter:
    return next(iter(_letters({MAIN: store}, name).values()))


def retried(stores: Mapping[str, BulkLineageMeta], name: str) -> str | None:
    """None where it is stored now, else why it still isn't. `stores` are the main one and those of catalogs, as a
    writer has them; whichever of them has the letter, the event goes to those that a writer would give it to."""
    letters = _letters(stores, name)
    home, letter = next(iter(letters.items()))
    if letter.source == STRAIGHT:  # nobody but its own listener would have told it, to this store alone
        words = _tried({home: stores[home]}, {home}, letter)
    else:
        words = _tried(stores, _places(stores, letter), letter)
    for each in letters:
        stores[each].mark_letter(name, LetterState.STORED if words is None else LetterState.WAITING, words)
    return words


def dropped(store: BulkLineageMeta, name: str) -> None:
    """Nobody waits for it any more. It stays where it is, to be looked at, and can be tried again."""
    found(store, name)
    store.mark_letter(name, LetterState.DROPPED)


def _letters(stores: Mapping[str, BulkLineageMeta], name: str) -> dict[str, DeadLetter]:
    """Of each store that has it: several can have refused one event."""
    asked = {place: store.letter(name) for place, store in stores.items()} if _is_name(name) else {}
    letters = {place: letter for place, letter in asked.items() if letter is not None}
    if not letters:
        raise NoLetterError(
            f"there is no dead letter {name}: `headwater dead-letters list --all` shows those there are"
        )
    return letters


def _places(stores: Mapping[str, BulkLineageMeta], letter: DeadLetter) -> frozenset[str]:
    return Routes({name: name for name in stores if name != MAIN}, Codec()).of_data(letter.data)


def _tried(stores: Mapping[str, BulkLineageMeta], places: Collection[str], letter: DeadLetter) -> str | None:
    """All stores are told that it came, even where its other rows don't go: else they would take it for missing."""
    read = Reader(letter.source, letter.topic_name, most_invalid=0).read([_taken(letter)])
    told = [letter.words for letter in read.letters]
    for name, store in stores.items():
        rows = read.rows if name in places else [row for row in read.rows if row.kind in EVERYWHERE]
        merged = store.merge_events([Told(rows, partial(_as_it_was, letter))])
        told += [f"{name}: {each.words}" if name else each.words for each in merged.refused]
    return told[0] if told else None


def _taken(letter: DeadLetter) -> Taken:
    """As it came from the bus."""
    return Taken(letter.data, letter.partition, letter.position, letter.appended, letter.key, letter.headers)


def _as_it_was(letter: DeadLetter, words: str) -> DeadLetter:
    return replace(letter, words=words)


def _is_name(name: str) -> bool:
    return len(name) == 32 and all(character in "0123456789abcdef" for character in name)
