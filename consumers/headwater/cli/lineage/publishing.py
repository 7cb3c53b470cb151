"""An administrator's event on its way: to the bus, where there is one, else straight into the store."""

from __future__ import annotations

import re
from argparse import Namespace
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, cast
from uuid import uuid4

from headwater.cli.flags import Flags, pair
from headwater.cli.store import add_store, open_given_store
from headwater.errors import ConfigurationError, TransientError
from headwater.events.avro import Codec, current_schema
from headwater.events.envelope import Event
from headwater.events.keys import headers_of, key_of
from headwater.events.producer import Producer
from headwater.spi import Application, EventRecord, RecordBatch, SpoolPosition

if TYPE_CHECKING:
    from headwater.spi import DurableListener, ListenerFactory

_KAFKA: Final = re.compile(r"kafka://(?P<servers>[^/]+)(?:/(?P<topic>[^/]+))?")
_SECONDS: Final = 60.0
_AT_ONCE: Final = 500
"""How many events are given to the publisher, or to the store, together."""
BusSettings = tuple[str, dict[str, str]]
"""The name of a publisher, and its configuration."""


def add_bus(parser: Flags) -> None:
    """Add the flags that say where an event goes."""
    add_store(parser)
    text = "publish it there, for every store of that bus; without it, --store gets it alone"
    parser.flag("bus", bus_of, None, text, "log:DIR|kafka://HOST:PORT/TOPIC")
    parser.flags("conf", pair, "a property of the bus, such as producer.security.protocol=SSL", "KEY=VALUE")


def bus_of(text: str) -> BusSettings:
    """Read what `--bus` names; a ValueError where that isn't written as it should be."""
    scheme, _, place = text.partition(":")
    if scheme == "log":
        return "log", {"fsync": "always", **({"dir": place} if place else {})}
    found = _KAFKA.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} isn't a bus: write log:DIR, or kafka://HOST:PORT/TOPIC")
    topic = {"topic": found["topic"]} if found["topic"] else {}
    return "kafka", {"bootstrap.servers": found["servers"], **topic}


def publish_or_store(given: Namespace, draft: Event) -> str:
    """Return when the event is there for good, with words for where it is. A HeadwaterError says that it isn't."""
    if given.bus is not None:
        name, configuration = given.bus
        publish(name, {**configuration, **dict(given.conf)}, draft)
        return "it is on the bus, and holds in each store when that has read it"
    if given.store is None:
        raise ConfigurationError("where to? Name the bus by --bus, or where there is none the store by --store")
    from headwater.lineage.mapping import map_event  # noqa: PLC0415

    with open_given_store(given, readonly=False) as store:
        Producer().emit(draft, lambda event, _: store.merge(map_event(event)))
    return "it holds from now on"


def publish_or_store_stamped(given: Namespace, events: Sequence[Event]) -> str:
    """Do the same with events that have their producers, sequences and times."""
    if given.bus is not None:
        name, configuration = given.bus
        for at in range(0, len(events), _AT_ONCE):
            records = _records_of(events[at : at + _AT_ONCE])
            _publish_records(name, {**configuration, **dict(given.conf)}, records)
        return "they are on the bus, and hold in each store when that has read them"
    from headwater.lineage.mapping import map_event  # noqa: PLC0415

    with open_given_store(given, readonly=False) as store:
        for at in range(0, len(events), _AT_ONCE):
            store.merge(row for event in events[at : at + _AT_ONCE] for row in map_event(event))
    return "they hold from now on"


def publish(name: str, configuration: dict[str, str], draft: Event) -> None:
    """Publish an event through the publisher that drivers have: the same records, by the same rules for keys."""
    _publish_records(name, configuration, _records(draft))


def _publish_records(name: str, configuration: dict[str, str], records: Sequence[EventRecord]) -> None:
    from headwater.events.clock import ProducerClock  # noqa: PLC0415
    from headwater.listeners.bus.listener_creation import (  # noqa: PLC0415
        DaemonExecutor,
        DriverListenerContext,
    )

    application = Application(f"headwater-{uuid4()}", "headwater")
    problems: list[str] = []

    def on_problem(_: str, detail: str) -> None:
        problems.append(detail)

    with DaemonExecutor("publishing") as executor:
        context = DriverListenerContext(name, configuration, executor, application, ProducerClock(), on_problem)
        listener = _factory(name).create(context)
        _deliver(cast("DurableListener", listener), records, problems)


def _factory(name: str) -> ListenerFactory:
    if name == "log":
        from headwater.publishers.log import LogFactory  # noqa: PLC0415

        return LogFactory()
    from headwater.publishers.kafka import KafkaFactory  # noqa: PLC0415

    return KafkaFactory()


def _records(draft: Event) -> list[EventRecord]:
    records: list[EventRecord] = []
    Producer().emit(draft, lambda event, data: records.append(_record(event, data, len(records))))
    return records


def _records_of(events: Sequence[Event]) -> list[EventRecord]:
    return [_record(event, Codec().encode(event), place) for place, event in enumerate(events)]


def _record(event: Event, data: bytes, place: int) -> EventRecord:
    headers = headers_of(event, current_schema(type(event)).fingerprint)
    return EventRecord(SpoolPosition(place), data, key_of(event), headers, Codec().decode)


def _deliver(listener: DurableListener, records: Sequence[EventRecord], problems: Sequence[str]) -> None:
    try:
        listener.handle(RecordBatch(records))
        answer = listener.flush(_SECONDS)
    finally:
        listener.close(_SECONDS)
    if answer is None or answer < records[-1].position:
        why = f": {problems[-1]}" if problems else ""
        raise TransientError(f"the bus didn't answer within {_SECONDS:g} s{why}; what was sent may still come")
