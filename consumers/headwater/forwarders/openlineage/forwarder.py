"""The forwarder: maps events and sends them, one after another."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Final

from openlineage.client.event_v2 import DatasetEvent, JobEvent, RunEvent
from openlineage.client.generated.processing_engine_run import ProcessingEngineRunFacet
from openlineage.client.serde import Serde

from headwater.config import read_config
from headwater.events import Event
from headwater.forwarders.api import BusEvent, ForwarderContext, RefusedEventsError
from headwater.forwarders.blocking import RefusedContentError
from headwater.forwarders.openlineage.delivery import FileTarget, HttpTarget, Target
from headwater.forwarders.openlineage.identifiers import present, stamped
from headwater.forwarders.openlineage.mapping import OpenLineageEvent, openlineage_events
from headwater.forwarders.openlineage.options import OpenLineageOptions
from headwater.spi import CheckResult

_KINDS: Final = {"run": RunEvent, "job": JobEvent, "dataset": DatasetEvent}


class OpenLineageForwarder:
    """Sends events to a consumer of OpenLineage. A thread of its own speaks to it, so that others go on meanwhile."""

    def __init__(self, context: ForwarderContext) -> None:
        options = read_config(OpenLineageOptions, context.options)
        self._lineage = context.lineage
        self._kinds = {_KINDS[kind] for kind in options.messages}
        self._engine_version = options.engine_version
        self._target = _target(options)
        self._sending = threading.Lock()

    async def handle(self, batch: Sequence[BusEvent]) -> None:
        given_up = threading.Event()
        try:
            await asyncio.to_thread(self._send, batch, given_up)
        except asyncio.CancelledError:
            given_up.set()
            raise

    def _send(self, batch: Sequence[BusEvent], given_up: threading.Event) -> None:
        """Send the messages in order. Who was given up stops before its next message."""
        with self._sending:
            refused = self._send_together(batch, given_up)
        if refused:
            raise RefusedEventsError(refused)

    def _send_together(self, batch: Sequence[BusEvent], given_up: threading.Event) -> dict[int, str]:
        """Return what was refused. Where that shows only at the end, whose it was shows when each is sent alone."""
        reasons = {index: self._send_event(each.event, given_up) for index, each in enumerate(batch)}
        try:
            self._target.finish()
        except RefusedContentError:
            if len(batch) == 1:
                return present({0: self._send_event(batch[0].event, given_up, is_alone=True)})
            alone = [self._send_together([each], given_up).get(0) for each in batch]
            reasons = dict(enumerate(alone))
        return present(reasons)

    def _send_event(self, event: Event, given_up: threading.Event, *, is_alone: bool = False) -> str | None:
        """Return why the target refuses the event. If it is alone, so is each message: a broker judges the size of what
        a client sends together."""
        try:
            for message in self._messages(event):
                if not given_up.is_set():
                    self._target.send(message)
                if is_alone:
                    self._target.finish()
        except RefusedContentError as e:
            return str(e)
        return None

    def _messages(self, event: Event) -> Iterator[OpenLineageEvent]:
        for message in openlineage_events(event, self._lineage):
            if type(message) in self._kinds:
                yield self._with_engine(message)

    def _with_engine(self, message: OpenLineageEvent) -> OpenLineageEvent:
        """Say which engine it was, where the event doesn't, and the configuration does."""
        if isinstance(message, RunEvent) and self._engine_version and message.run.facets is not None:
            engine = ProcessingEngineRunFacet(version=self._engine_version, name="spark")
            message.run.facets = {**stamped({"processing_engine": engine}), **message.run.facets}
        return message

    async def check(self) -> AsyncIterator[CheckResult]:
        for result in await asyncio.to_thread(lambda: list(self._target.check())):
            yield result

    def preview(self, event: Event) -> Iterator[str]:
        for message in self._messages(event):
            yield json.dumps(Serde.to_dict(message), indent=2, sort_keys=True, ensure_ascii=False)

    async def close(self) -> None:
        await asyncio.to_thread(self._target.close)


def _target(options: OpenLineageOptions) -> Target:
    if options.url is not None:
        return HttpTarget(options.url, options)
    if options.bootstrap_servers is not None:
        from headwater.forwarders.openlineage.kafka import OpenLineageTopic  # noqa: PLC0415 - librdkafka, where it is used

        return OpenLineageTopic(options.bootstrap_servers, options)
    return FileTarget(str(options.file))
