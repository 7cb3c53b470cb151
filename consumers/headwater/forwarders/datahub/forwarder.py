"""The forwarder: maps events to proposals and sends them, off the event loop."""

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
from headwater.forwarders.datahub.delivery import DataHubTarget, open_target
from headwater.forwarders.datahub.mapping import datahub_proposals
from headwater.forwarders.datahub.options import DataHubConfig
from headwater.forwarders.datahub.proposals import Proposal, millis_since_epoch
from headwater.forwarders.http_responses import RefusedContentError
from headwater.spi import CheckResult


class DataHubForwarder:
    """Sends events to DataHub. The SDK's calls block: they have a thread, and who waits for them doesn't block."""

    def __init__(self, context: ForwarderContext) -> None:
        self._config: Final = read_config(DataHubConfig, context.options)
        self._target: Final[DataHubTarget] = open_target(self._config)
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
        for proposal in datahub_proposals(event, self._config):
            told = proposal.to_obj()
            value = json.dumps(json.loads(told["aspect"]["value"]), indent=1, ensure_ascii=False)
            yield f"{told['changeType']} {told['aspectName']} of {told['entityUrn']}\n{value}"

    async def close(self) -> None:
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        with self._sending:
            self._target.close()

    def _send(self, events: Sequence[Event], given_up: threading.Event) -> None:
        """Send the events in order. Of a batch that is refused each event is sent alone, to find which it is."""
        with self._sending:
            if given_up.is_set():
                return
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
        proposals = [each for event in events for each in datahub_proposals(event, self._config)]
        if proposals and not given_up.is_set():
            self._target.send(proposals, _batch_name(events, proposals), lambda: not given_up.is_set())


def _batch_name(events: Sequence[Event], proposals: Sequence[Proposal]) -> str:
    """Return a name that the same events have again, later ones behind earlier ones."""
    first = events[0]
    return f"{millis_since_epoch(first.time):015d}-{first.event_id}-{len(proposals):06d}"
