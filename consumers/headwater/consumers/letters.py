"""Events that couldn't be stored are tried again: by a newer version, say, or once a database takes what it refused."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from headwater.consumers.sources import Taken
from headwater.consumers.writer.reading import Reader
from headwater.errors import TerminalError
from headwater.lineage.bulk import BulkLineageMeta, DeadLetter, LetterState, Told


class NoLetterError(TerminalError):
    """There is no dead letter of that name."""


def found(store: BulkLineageMeta, name: str) -> DeadLetter:
    letter = store.letter(name) if _is_name(name) else None
    if letter is None:
        raise NoLetterError(
            f"there is no dead letter {name}: `headwater dead-letters list --all` shows those there are"
        )
    return letter


def retried(store: BulkLineageMeta, name: str) -> str | None:
    """None where it is stored now, else why it still isn't."""
    letter = found(store, name)
    words = _tried(store, letter)
    store.mark_letter(name, LetterState.STORED if words is None else LetterState.WAITING, words)
    return words


def dropped(store: BulkLineageMeta, name: str) -> None:
    """Nobody waits for it any more. It stays where it is, to be looked at, and can be tried again."""
    found(store, name)
    store.mark_letter(name, LetterState.DROPPED)


def _tried(store: BulkLineageMeta, letter: DeadLetter) -> str | None:
    read = Reader(letter.source, letter.topic_name, most_invalid=0).read([_taken(letter)])
    merged = store.merge_events([Told(read.rows, partial(_as_it_was, letter))])
    return next((each.words for each in (*read.letters, *merged.refused)), None)


def _taken(letter: DeadLetter) -> Taken:
    """As it came from the bus."""
    return Taken(letter.data, letter.partition, letter.position, letter.appended, letter.key, letter.headers)


def _as_it_was(letter: DeadLetter, words: str) -> DeadLetter:
    return replace(letter, words=words)


def _is_name(name: str) -> bool:
    return len(name) == 32 and all(character in "0123456789abcdef" for character in name)
