"""How the changes of events get to Atlas: by its REST API, or by its topic. All calls block their thread."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, Protocol

from headwater.errors import ConfigurationError, TerminalError
from headwater.forwarders.atlas.batches import MOST
from headwater.forwarders.atlas.entities import Change
from headwater.forwarders.atlas.messages import KEY, envelopes, notifications
from headwater.forwarders.atlas.options import AtlasConfig
from headwater.forwarders.atlas.resolving import AtlasPlan, needs_relations
from headwater.forwarders.atlas.rest import AtlasService
from headwater.forwarders.topic_producer import TopicProducer
from headwater.spi import CheckResult


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
