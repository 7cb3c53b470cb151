"""Sends the dead letters again that somebody marked for a retry, between batches."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from itertools import islice
from typing import Final

from headwater.errors import TerminalError
from headwater.events.avro import Codec
from headwater.forwarders.api import BusEvent
from headwater.forwarders.dead_letters import record_of
from headwater.forwarders.decoding import decode_record
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

    def __init__(self, letters: DeadLetters, delivery: BatchDelivery, metrics: ForwarderMetrics) -> None:
        self._letters = letters
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
        """Return the next letters that are marked."""
        if not self._letters.count_dead_letters(DeadLetterState.RETRY):
            return []
        with closing(self._letters.dead_letters(DeadLetterState.RETRY)) as found:
            return list(islice(found, _AT_ONCE))

    async def _retry(self, letters: Sequence[tuple[str, DeadLetter]]) -> bool:
        """Send these letters. Those that can't be sent wait again. Return False if the target took none: then they are
        left as they are, for later."""
        failed: dict[str, str] = {}
        name_of: dict[int, str] = {}
        events: list[BusEvent] = []
        for name, letter in letters:
            found = self._event_of(letter)
            if isinstance(found, TerminalError):
                failed[name] = str(found)
            else:
                name_of[id(found)] = name
                events.append(found)
        result, is_taken = await self._delivery.try_once(events) if events else (DeliveryResult(), True)
        failed.update({name_of[id(unsent.event)]: unsent.error for unsent in result.unsent})
        left = {name_of[id(each)] for each in result.postponed}
        if is_taken:
            failed.update(dict.fromkeys(left, str(self._metrics.last_error)))
            left.clear()
        self._settle([name for name, _ in letters if name not in left], failed)
        return not left

    def _settle(self, names: Sequence[str], failed: Mapping[str, str]) -> None:
        sent = [name for name in names if name not in failed]
        self._letters.remove_dead_letters(sent)
        for name, error in failed.items():
            self._letters.mark_dead_letters([name], DeadLetterState.WAITING, error)
        self._metrics.retried += len(sent)

    def _event_of(self, letter: DeadLetter) -> BusEvent | TerminalError:
        record = record_of(letter)
        try:
            return BusEvent(decode_record(self._codec, record), record)
        except TerminalError as e:
            return e
