"""Sends the dead letters again that somebody marked for a retry, between batches."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Final

from headwater.errors import TerminalError
from headwater.events.avro import Codec
from headwater.forwarders.api import BusEvent
from headwater.forwarders.assembling import EventAssembler, merge_records
from headwater.forwarders.dead_letters import ForwarderLetter, LetterBox, LetterState
from headwater.forwarders.delivery import BatchDelivery
from headwater.forwarders.isolation import DeliveryResult
from headwater.forwarders.metrics import ForwarderMetrics

_SECONDS: Final = 1.0
"""How often somebody's wish to retry dead letters is looked for."""
_AGAIN_SECONDS: Final = 30.0
"""How long dead letters are left alone after the target took none."""
_AT_ONCE: Final = 100


class LetterRetry:
    """Retries the dead letters of one forwarder. A letter that the target fails on doesn't hold up the bus."""

    def __init__(
        self, letters: LetterBox, assembler: EventAssembler, delivery: BatchDelivery, metrics: ForwarderMetrics
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
        letters = self._letters.letters(LetterState.RETRY, most=_AT_ONCE)
        is_taken = not letters or await self.retry(letters)
        self.has_more = is_taken and len(letters) == _AT_ONCE
        wait = _SECONDS if is_taken else _AGAIN_SECONDS
        self._due_at = time.monotonic() + (0.0 if self.has_more else wait)

    async def retry(self, letters: Sequence[ForwarderLetter]) -> bool:
        """Send these letters. Those that can't be sent wait again. Return False if the target took none: then they are
        left as they are, for later."""
        failed: dict[int, str] = {}
        events: list[BusEvent] = []
        letter_of: dict[int, ForwarderLetter] = {}
        for letter in letters:
            found = self._event_of(letter)
            if isinstance(found, TerminalError):
                failed[letter.id] = str(found)
            else:
                letter_of[id(found)] = letter
                events.append(found)
        result, taken = await self._delivery.try_once(events) if events else (DeliveryResult(), True)
        failed.update({letter_of[id(each.event)].id: each.error for each in result.unsent})
        left = {letter_of[id(each)].id for each in result.postponed}
        if taken:
            failed.update(dict.fromkeys(left, str(self._metrics.last_error)))
            left.clear()
        self._settle([each for each in letters if each.id not in left], failed)
        return not left

    def _settle(self, letters: Sequence[ForwarderLetter], failed: Mapping[int, str]) -> None:
        sent = [each for each in letters if each.id not in failed]
        self._assembler.record_merged(each.event for each in sent if each.event and len(each.records) > 1)
        self._letters.settle((each.id for each in sent), failed)
        self._metrics.retried += len(sent)

    def _event_of(self, letter: ForwarderLetter) -> BusEvent | TerminalError:
        try:
            return BusEvent(merge_records(self._codec, letter.records), letter.records[-1])
        except TerminalError as e:
            return e
