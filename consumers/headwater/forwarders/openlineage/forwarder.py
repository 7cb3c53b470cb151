"""The forwarder: maps events and sends them, one after another."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from openlineage.client.event_v2 import DatasetEvent, JobEvent, RunEvent
from openlineage.client.generated.processing_engine_run import ProcessingEngineRunFacet
from openlineage.client.serde import Serde

from headwater.config import read_config
from headwater.events import Event
from headwater.forwarders.api import ForwarderContext
from headwater.forwarders.http_delivery import BlockingForwarder, RefusedContentError
from headwater.forwarders.openlineage.delivery import FileTarget, HttpTarget, Target
from headwater.forwarders.openlineage.identifiers import present, stamped
from headwater.forwarders.openlineage.mapping import OpenLineageEvent, openlineage_events
from headwater.forwarders.openlineage.options import OpenLineageOptions

_KINDS: Final = {"run": RunEvent, "job": JobEvent, "dataset": DatasetEvent}


class OpenLineageForwarder(BlockingForwarder):
    """Sends events to a consumer of OpenLineage."""

    def __init__(self, context: ForwarderContext) -> None:
        options = read_config(OpenLineageOptions, context.options)
        self._lineage = context.lineage
        self._kinds = {_KINDS[kind] for kind in options.messages}
        self._engine_version = options.engine_version
        self._target = _target(options)
        super().__init__(self._target)

    def deliver(self, events: Sequence[Event], is_wanted: Callable[[], bool]) -> dict[int, str]:
        """Where a refusal shows only at the end, whose it was shows when each event is sent alone."""
        reasons = {index: self._send_event(event, is_wanted) for index, event in enumerate(events)}
        try:
            self._target.finish()
        except RefusedContentError:
            if len(events) == 1:
                return present({0: self._send_event(events[0], is_wanted, is_alone=True)})
            alone = [self.deliver([event], is_wanted).get(0) for event in events]
            reasons = dict(enumerate(alone))
        return present(reasons)

    def _send_event(self, event: Event, is_wanted: Callable[[], bool], *, is_alone: bool = False) -> str | None:
        """Return why the target refuses the event. If it is alone, so is each message: a broker judges the size of what
        a client sends together."""
        try:
            for message in self._messages(event):
                if is_wanted():
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

    def preview(self, event: Event) -> Iterator[str]:
        for message in self._messages(event):
            yield json.dumps(Serde.to_dict(message), indent=2, sort_keys=True, ensure_ascii=False)


def _target(options: OpenLineageOptions) -> Target:
    if options.url is not None:
        return HttpTarget(options.url, options)
    if options.bootstrap_servers is not None:
        from headwater.forwarders.openlineage.kafka import OpenLineageTopic  # noqa: PLC0415 - librdkafka, where it is used

        return OpenLineageTopic(options.bootstrap_servers, options)
    return FileTarget(str(options.file))
