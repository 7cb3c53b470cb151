"""The forwarder: maps events to changes and sends them, off the event loop."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Final

from headwater.config import read_config
from headwater.errors import HeadwaterError
from headwater.events import Event
from headwater.forwarders.api import BusEvent, ForwarderContext, RefusedEventsError
from headwater.forwarders.atlas.entities import readable_change
from headwater.forwarders.atlas.mapping import atlas_changes
from headwater.forwarders.atlas.options import AtlasConfig
from headwater.forwarders.atlas.targets import AtlasTarget, open_target
from headwater.forwarders.http_responses import RefusedContentError
from headwater.spi import CheckResult


class AtlasForwarder:
    """Sends events to Atlas. Its calls block: they have a thread, and who waits for them doesn't block."""

    def __init__(self, context: ForwarderContext) -> None:
        self._config: Final = read_config(AtlasConfig, context.options)
        self._target: Final[AtlasTarget] = open_target(self._config)
        self._sending: Final = threading.Lock()

    async def handle(self, batch: Sequence[BusEvent]) -> None:
        given_up = threading.Event()
        try:
            await asyncio.to_thread(self._send, [each.event for each in batch], given_up)
        except asyncio.CancelledError:
            given_up.set()
            raise

    async def check(self) -> AsyncIterator[CheckResult]:
        try:
            for result in await asyncio.to_thread(lambda: list(self._target.check())):
                yield result
        except HeadwaterError as e:
            yield CheckResult.error("target", str(e))

    def preview(self, event: Event) -> Iterator[str]:
        for change in atlas_changes(event, self._config):
            yield json.dumps(readable_change(change), indent=1, ensure_ascii=False)

    async def close(self) -> None:
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        with self._sending:
            self._target.close()

    def _send(self, events: Sequence[Event], given_up: threading.Event) -> None:
        """Send the events in order. Of a batch that is refused each event is sent alone, to find which it is."""
        with self._sending:
            try:
                self._send_together(events, given_up)
            except RefusedContentError as e:
                refused = {0: str(e)} if len(events) == 1 else self._send_alone(events, given_up)
                if refused:
                    raise RefusedEventsError(refused) from e

    def _send_alone(self, events: Sequence[Event], given_up: threading.Event) -> dict[int, str]:
        reasons = {index: self._refusal(event, given_up) for index, event in enumerate(events)}
        return {index: reason for index, reason in reasons.items() if reason is not None}

    def _refusal(self, event: Event, given_up: threading.Event) -> str | None:
        """Send one event, and return why it is refused."""
        try:
            self._send_together([event], given_up)
        except RefusedContentError as e:
            return str(e)
        return None

    def _send_together(self, events: Sequence[Event], given_up: threading.Event) -> None:
        changes = [atlas_changes(event, self._config) for event in events]
        self._target.send(changes, lambda: not given_up.is_set())
