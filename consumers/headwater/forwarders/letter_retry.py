"""Sends the dead letters again that somebody marked for a retry, between batches."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import islice, takewhile
from typing import Final

from headwater.errors import TerminalError
from headwater.events.avro import Codec
from headwater.forwarders.api import BusEvent
from headwater.forwarders.assembling import EventAssembler, merge_records
from headwater.forwarders.dead_letters import record_of
from headwater.forwarders.delivery import BatchDelivery
from headwater.forwarders.isolation import DeliveryResult
from headwater.forwarders.metrics import ForwarderMetrics
from headwater.lineage.bulk import DeadLetter, DeadLetterState
from headwater.lineage.bulk.dead_letters import DeadLetters

_SECONDS: Final = 1.0
"""How often somebody's wish to retry dead letters is looked for."""
_AGAIN_SECONDS: Final = 30.0
"""How long dead letters are left alone after the target took none."""
_AT_ONCE: Final = 100


class LetterRetry:
    """Retries the dead letters of one forwarder. A letter that the target fails on doesn't hold up the bus."""

    def __init__(
        self, letters: DeadLetters, assembler: EventAssembler, delivery: BatchDelivery, metrics: ForwarderMetrics
    ) -> None:
        self._letters = letters
        self._assembler = assembler
        self._delivery = delivery
        self._metrics = metrics
        self._codec = Codec()
        self._due_at = 0.0
        self.has_more = False
        """Whether there may be more letters to send at once."""

    async def run_if_due(self) -> None:
        """Send some of the letters that are marked, in the order in which they became such. The bus is polled, and a
        wish to stop is seen, before the next ones."""
        if time.monotonic() < self._due_at:
            return
        letters = self._marked_letters()
        is_taken = not letters or await self._retry(letters)
        self.has_more = is_taken and len(letters) >= _AT_ONCE
        wait = _SECONDS if is_taken else _AGAIN_SECONDS
        self._due_at = time.monotonic() + (0.0 if self.has_more else wait)

    def _marked_letters(self) -> list[tuple[str, DeadLetter]]:
        """Return the next letters that are marked; those of the parts of one event are together."""
        if not self._letters.count_dead_letters(DeadLetterState.RETRY):
            return []
        with closing(self._letters.dead_letters(DeadLetterState.RETRY)) as found:
            letters = list(islice(found, _AT_ONCE))
            last = letters[-1][1].event if letters else None
            letters += takewhile(lambda each: each[1].event == last is not None, found)
        return letters

    async def _retry(self, letters: Sequence[tuple[str, DeadLetter]]) -> bool:
        """Send these letters. Those that can't be sent wait again. Return False if the target took none: then they are
        left as they are, for later."""
        failed: dict[str, str] = {}
        names_of: dict[int, list[str]] = {}
        events: list[BusEvent] = []
        for names, parts in _by_event(letters):
            found = self._event_of(parts)
            if isinstance(found, TerminalError):
                failed.update(dict.fromkeys(names, str(found)))
            else:
                names_of[id(found)] = names
                events.append(found)
        result, is_taken = await self._delivery.try_once(events) if events else (DeliveryResult(), True)
        for unsent in result.unsent:
            failed.update(dict.fromkeys(names_of[id(unsent.event)], unsent.error))
        left = {name for each in result.postponed for name in names_of[id(each)]}
        if is_taken:
            failed.update(dict.fromkeys(left, str(self._metrics.last_error)))
            left.clear()
        self._settle([(name, each) for name, each in letters if name not in left], failed)
        return not left

    def _settle(self, letters: Sequence[tuple[str, DeadLetter]], failed: Mapping[str, str]) -> None:
        sent = {name: each for name, each in letters if name not in failed}
        counts = Counter(each.event for each in sent.values() if each.event is not None)
        self._assembler.record_merged(event for event, count in counts.items() if count > 1)
        self._letters.remove_dead_letters(sent)
        for name, error in failed.items():
            self._letters.mark_dead_letters([name], DeadLetterState.WAITING, error)
        self._metrics.retried += len(sent)

    def _event_of(self, parts: Sequence[DeadLetter]) -> BusEvent | TerminalError:
        records = [record_of(each) for each in parts]
        try:
            return BusEvent(merge_records(self._codec, records), records[-1])
        except TerminalError as e:
            return e


def _by_event(letters: Iterable[tuple[str, DeadLetter]]) -> Iterator[tuple[list[str], list[DeadLetter]]]:
    """Yield the names and letters of each event: one, or those of its parts."""
    groups: dict[object, dict[str, DeadLetter]] = {}
    for name, letter in letters:
        groups.setdefault(letter.event or name, {})[name] = letter
    for group in groups.values():
        yield list(group), list(group.values())
