"""The forwarder: maps events to changes and sends them, off the event loop.

What Atlas is told of an event is a pure function, without I/O and clock. Changes get to Atlas by its REST API or by
its topic; all calls block their thread.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, Protocol

from headwater.config import read_config
from headwater.errors import ConfigurationError, TerminalError
from headwater.events import Event
from headwater.forwarders.api import ForwarderContext
from headwater.forwarders.atlas.changes import EventChanges
from headwater.forwarders.atlas.datasets import (
    change_altered_table,
    change_altered_view,
    change_created_table,
    change_created_view,
    change_database,
    change_dropped_database,
    change_dropped_table,
)
from headwater.forwarders.atlas.entities import Change, readable_change
from headwater.forwarders.atlas.jobs import (
    change_commit,
    change_failed_statement,
    change_job_lineage,
    change_job_status,
    change_started_job,
)
from headwater.forwarders.atlas.messages import KEY, MOST, envelopes, notifications
from headwater.forwarders.atlas.names import AtlasNamer
from headwater.forwarders.atlas.options import AtlasConfig, AtlasNames
from headwater.forwarders.atlas.resolving import AtlasPlan, needs_relations
from headwater.forwarders.atlas.rest import AtlasService
from headwater.forwarders.event_facts import may_be_without_effect
from headwater.forwarders.http_delivery import BatchForwarder
from headwater.forwarders.topic_producer import TopicProducer
from headwater.spi import CheckResult

CHANGES_OF: Final[dict[str, Callable[[Any, EventChanges], None]]] = {
    "CreateDatabase": change_database,
    "AlterDatabase": change_database,
    "DropDatabase": change_dropped_database,
    "CreateTable": change_created_table,
    "AlterTable": change_altered_table,
    "DropTable": change_dropped_table,
    "CreateView": change_created_view,
    "AlterView": change_altered_view,
    "DropView": change_dropped_table,
    "JobStarted": change_started_job,
    "JobStatusChanged": change_job_status,
    "JobLineage": change_job_lineage,
    "Committed": change_commit,
    "StatementFailed": change_failed_statement,
}
"""By the kind of event. Atlas has no words for the others: docs/atlas.md lists them."""


def atlas_changes(event: Event, names: AtlasNames) -> tuple[Change, ...]:
    """Return what is to change in Atlas because of an event.

    Nothing is said of DDL that may not have taken effect.
    """
    change = CHANGES_OF.get(event.kind)
    if change is None or may_be_without_effect(event):
        return ()
    changes = EventChanges(event, AtlasNamer(names))
    change(event, changes)
    return tuple(changes)


class AtlasTarget(Protocol):
    """Where changes go."""

    def send(self, events: Sequence[Sequence[Change]], is_wanted: Callable[[], bool]) -> None:
        """Send the changes of events in their order; stop between two requests when they are no longer wanted."""
        ...

    def check(self) -> Iterator[CheckResult]:
        """Check the target without writing to it."""
        ...

    def close(self) -> None: ...


class AtlasRestTarget:
    """Atlas's REST API: what is written depends on what is there."""

    def __init__(self, service: AtlasService) -> None:
        self._service: Final = service

    def send(self, events: Sequence[Sequence[Change]], is_wanted: Callable[[], bool]) -> None:
        """Events that don't concern each other go out in one request, the others one after another."""
        if not any(events):
            return
        self._service.register_types()
        left = [changes for changes in events if changes]
        while left and is_wanted():
            left = left[self._send_first(left, is_wanted) :]

    def check(self) -> Iterator[CheckResult]:
        yield from self._service.check()

    def close(self) -> None:
        self._service.close()

    def _send_first(self, events: Sequence[Sequence[Change]], is_wanted: Callable[[], bool]) -> int:
        """Send as many of the events as can go together, and return their number."""
        mentioned = {ref for changes in events for change in changes for ref in change.mentioned}
        whole = {ref for changes in events for change in changes for ref in needs_relations(change)}
        found = self._service.read(mentioned, whole)
        plan = AtlasPlan()
        count = 0
        for changes in events:
            if plan.deletions or len(plan.entities) >= MOST or plan.concerns(changes):
                break
            plan.add(changes, found)
            count += 1
        self._service.write(plan, is_wanted)
        return count


class AtlasTopicTarget:
    """Atlas's topic. Atlas reads it when it can; what it makes of a message shows only in its own log."""

    def __init__(self, config: AtlasConfig, service: AtlasService | None) -> None:
        self._config: Final = config
        self._service: Final = service
        # A broker judges the size of what librdkafka sends together: that isn't larger than one message may be.
        sizes = {"message.max.bytes": str(2 * config.message_bytes), "batch.size": str(config.message_bytes)}
        self._topic: Final = TopicProducer(
            config.bootstrap_servers or "", config.topic, {**sizes, **config.producer}, config.request_timeout
        )

    def send(self, events: Sequence[Sequence[Change]], is_wanted: Callable[[], bool]) -> None:
        if self._service is not None and any(events):
            self._service.register_types()
        for changes in events:
            if not is_wanted():
                return
            at = max((change.at for change in changes), default=0)
            for notification in notifications(changes):
                size, compress = self._config.message_bytes, self._config.compression
                for message in envelopes(notification, at, size, compress=compress):
                    self._topic.send(KEY, message)
        self._topic.finish()

    def check(self) -> Iterator[CheckResult]:
        yield from self._topic.check()
        if self._service is not None:
            yield from self._service.check()

    def close(self) -> None:
        self._topic.close()
        if self._service is not None:
            self._service.close()


def open_target(config: AtlasConfig) -> AtlasTarget:
    """Return what the configuration names; a ConfigurationError says why it can't be used."""
    try:
        service = None if config.url is None else AtlasService(config)
        if config.bootstrap_servers is None and service is not None:
            return AtlasRestTarget(service)
        return AtlasTopicTarget(config, service)
    except TerminalError as e:
        raise ConfigurationError(str(e)) from e


class AtlasForwarder(BatchForwarder):
    """Sends events to Atlas."""

    def __init__(self, context: ForwarderContext) -> None:
        self._config: Final = read_config(AtlasConfig, context.options)
        self._target: Final[AtlasTarget] = open_target(self._config)
        super().__init__(self._target)

    def preview(self, event: Event) -> Iterator[str]:
        for change in atlas_changes(event, self._config):
            yield json.dumps(readable_change(change), indent=1, ensure_ascii=False)

    def send_together(self, events: Sequence[Event], is_wanted: Callable[[], bool]) -> None:
        self._target.send([atlas_changes(event, self._config) for event in events], is_wanted)
