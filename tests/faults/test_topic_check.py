"""The check finds whatever can be wrong with a topic: each fault is planted into one on which all is right."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import islice
from random import Random
from typing import Final
from uuid import UUID

import pytest

from headwater.events import Heartbeat, JobStatusChanged
from headwater.events.avro import Codec, current_schema
from headwater.events.envelope import Event
from headwater.events.jobs import JobStatus
from headwater.events.keys import headers_of, key_of
from headwater.events.names import JobName
from headwater.events.producer import Producer
from tests.kit.events.drafts import many_drafts
from tests.kit.kafka.ledger import SpooledEvent
from tests.kit.kafka.topic_check import Verdict, check_topic
from tests.kit.kafka.topic_copies import Copy

PARTITIONS: Final = 3
Messages = list[tuple[bytes | None, bytes, dict[str, bytes]]]


def a_topic() -> tuple[list[SpooledEvent], list[Messages]]:
    """Sixty events in their partitions."""
    emitted: list[SpooledEvent] = []
    partitions: list[Messages] = [[] for _ in range(PARTITIONS)]

    def append(event: Event, data: bytes) -> None:
        place = sum(key_of(event)) % PARTITIONS
        schema = current_schema(type(event))
        partitions[place].append((key_of(event), data, dict(headers_of(event, schema.fingerprint))))
        emitted.append(SpooledEvent.of(event))

    producer = Producer("application_1")
    for draft in islice(many_drafts(Random(1), large=False), 60):
        producer.emit(draft, append)
    return emitted, partitions


def copies(partitions: list[Messages]) -> list[Copy]:
    return [
        Copy(place, offset, key, value, headers, 0, is_broker_time=True)
        for place, messages in enumerate(partitions)
        for offset, (key, value, headers) in enumerate(messages)
    ]


def an_event(partitions: list[Messages], place: int = 0) -> int:
    """The index of one in the midst of a partition, with another of its key behind it."""
    keys = [key for key, _, _ in partitions[place]]
    return next(at for at, key in enumerate(keys) if at > 3 and key is not None and key in keys[at + 1 :])


def test_all_is_right_and_copies_are_counted() -> None:
    emitted, partitions = a_topic()
    once = check_topic(emitted, copies(partitions))
    assert once == Verdict(emitted=60, events=60, copies=60, own=0)
    again = len(partitions[0])
    partitions[0] += partitions[0]
    twice = check_topic(emitted, copies(partitions))
    assert twice == replace(once, copies=60 + again)


def swap(messages: Messages) -> None:
    keys = [key for key, _, _ in messages]
    first = an_event([messages])
    second = keys.index(keys[first], first + 1)
    messages[first], messages[second] = messages[second], messages[first]


def lose(messages: Messages) -> None:
    del messages[an_event([messages])]


def change(messages: Messages) -> None:
    key, value, headers = messages[an_event([messages])]
    messages.append((key, value, headers | {"kind": b"Other"}))


def alter_the_key(messages: Messages) -> None:
    at = an_event([messages])
    messages[at] = (b"other", *messages[at][1:])


def tell_another(messages: Messages) -> None:
    data: list[tuple[bytes | None, bytes, dict[str, bytes]]] = []
    stranger = Producer("application_2")
    schema = current_schema(Heartbeat)
    stranger.emit(Heartbeat(), lambda event, one: data.append((b"k", one, dict(headers_of(event, schema.fingerprint)))))
    messages += data


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (swap, "of the same key"),
        (lose, "LOST"),
        (change, "two copies differ"),
        (alter_the_key, "and should be"),
        (tell_another, "nobody told"),
    ],
)
def test_what_is_wrong_is_found(spoil: Callable[[Messages], None], words: str) -> None:
    emitted, partitions = a_topic()
    spoil(partitions[0])
    with pytest.raises(AssertionError, match=words):
        check_topic(emitted, copies(partitions))


def test_a_key_in_two_partitions_is_found() -> None:
    emitted, partitions = a_topic()
    at = an_event(partitions)
    partitions[1] = [message for message in partitions[0] if message[0] is None] + partitions[1]
    partitions[1].append(partitions[0].pop(at))
    with pytest.raises(AssertionError, match="is in partitions"):
        check_topic(emitted, copies(partitions))


def test_other_bytes_than_told_are_found() -> None:
    emitted, partitions = a_topic()
    emitted[5] = replace(emitted[5], digest="0" * 32)
    with pytest.raises(AssertionError, match="other bytes were told"):
        check_topic(emitted, copies(partitions))


def test_who_was_killed_may_have_told_one_more_than_is_noted() -> None:
    emitted, partitions = a_topic()
    with pytest.raises(AssertionError, match="nobody told"):
        check_topic(emitted[:-1], copies(partitions))
    assert check_topic(emitted[:-1], copies(partitions), unnoted=1).events == 60
    with pytest.raises(AssertionError, match="nobody told"):
        check_topic([*emitted[:30], *emitted[31:]], copies(partitions), unnoted=1)


def test_a_hole_in_what_was_noted_by_nobody_is_found() -> None:
    emitted, partitions = a_topic()
    lost = emitted.pop(30)
    for messages in partitions:
        messages[:] = [each for each in messages if each[2].get("sequence") != b"%d" % lost.id.sequence]
    with pytest.raises(AssertionError, match="are on no partition"):
        check_topic(emitted, copies(partitions))
    assert check_topic(emitted, copies(partitions), may_have_holes=True).events == 59


def test_what_the_bus_tells_by_itself_is_nobodys_fault() -> None:
    emitted, partitions = a_topic()
    end = JobStatusChanged(run=UUID(int=1), job=JobName(name="ended"), status=JobStatus.KILLED, inferred=True)
    last = emitted[-1].id
    event = end.model_copy(update={"producer": last.producer, "sequence": last.sequence + 1})
    schema = current_schema(JobStatusChanged)
    partitions[2].append((key_of(event), Codec().encode(event), dict(headers_of(event, schema.fingerprint))))
    assert check_topic(emitted, copies(partitions)).own == 1
