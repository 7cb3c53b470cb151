"""A record's way: parsed, resolved, translated, attributed, emitted. Each stage knows what the one before it gives.

| stage | gives | where |
|---|---|---|
| parse | a `Record` | `records` |
| resolve | it, with its plan, its catalogs and what they identify | `resolution` |
| translate | drafts of events, and what they are attributed by | `translation` |
| attribute | events of a job, a run and a client | `event_attribution` |
| emit | nothing: the bus has them | here |
"""

from __future__ import annotations

from collections.abc import Callable

from headwater.events import Event, Gap
from headwater.events.health import GapReason
from headwater.listeners.capture.context import CaptureContext
from headwater.listeners.capture.drafts import OwnedDrafts, Owner, Translated
from headwater.listeners.capture.event_attribution import EventAttributor, Jobs
from headwater.listeners.capture.records import Record
from headwater.listeners.capture.resolution import Resolved, Resolver, invalid_record
from headwater.listeners.capture.translation import Translator
from headwater.listeners.settings import Settings


class EventPipeline:
    """For one producer and one thread."""

    def __init__(
        self,
        context: CaptureContext,
        jobs: Jobs,
        next_barrier: Callable[[], int],
        emit: Callable[[Event], object],
        settings: Settings,
    ) -> None:
        self._resolver = Resolver(context, settings.capture_plan_bytes)
        self._translator = Translator(context, next_barrier, settings.lineage_repeat)
        self._attributor = EventAttributor(jobs)
        self._emit = emit

    def process(self, record: Record) -> None:
        """Emit the events of one record; a Gap if it can't be translated."""
        try:
            self._process(self._resolver.resolve(record))
        except Exception as e:  # noqa: BLE001 - a statement that can't be translated must not stop the next one
            self._process(invalid_record(record, e))

    def take_forgotten(self) -> list[str]:
        """Digests of the plans that aren't kept any more: a statement that has one needs it reported again."""
        return self._resolver.take_forgotten()

    def emit_gap(self, reason: GapReason, detail: str) -> None:
        """A Gap of the application's. For any thread."""
        self._emit_all(OwnedDrafts(Owner(Record()), (Gap(reason=reason, detail=detail),)))

    def _process(self, resolved: Resolved) -> None:
        for translated in self._translator.translate(resolved):
            self._emit_all(translated)

    def _emit_all(self, translated: Translated) -> None:
        for event in self._attributor.events(translated):
            self._emit(event)
