"""Dead letters on their topic: each at least once, whatever is away or killed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from headwater.consumers.writer import dead_letter_mirror
from headwater.consumers.writer.dead_letter_mirror import DeadLetterMirror
from headwater.consumers.writer.metrics import WriterMetrics
from headwater.errors import TransientError
from headwater.lineage.bulk import BulkLineageMeta, BusPartition, DeadLetter, DeadLetterReason, WriteBatch
from headwater.lineage.store import open_store
from tests.kit.stores import open_new_store
from tests.kit.waiting import until

WHERE = BusPartition("cluster", "topic-id", 2)
PATIENCE = 60.0


def letters(count: int, source: str = "kafka", topic: str = "events") -> list[DeadLetter]:
    return [
        DeadLetter(DeadLetterReason.UNDECODABLE, "no event", source, WHERE, number, b"x", topic_name=topic)
        for number in range(count)
    ]


class Topic:
    """Has what it was sent, and fails so often first."""

    def __init__(self, *troubles: Exception) -> None:
        self.troubles = list(troubles)
        self.has: list[int] = []
        self.is_closed = False

    def cluster(self) -> str:
        return WHERE.cluster

    def send(self, letters: Sequence[DeadLetter]) -> None:
        if self.troubles:
            raise self.troubles.pop(0)
        self.has += [each.position for each in letters]

    def idle(self) -> None: ...

    def close(self) -> None:
        self.is_closed = True


@pytest.fixture
def store(tmp_path: Path) -> Iterator[BulkLineageMeta]:
    with open_new_store(f"sqlite:///{tmp_path}/store.db") as opened:
        yield opened.bulk


def test_what_waits_is_sent_once(store: BulkLineageMeta) -> None:
    store.merge(WriteBatch(dead_letters=letters(50)))
    topic, vitals = Topic(), WriterMetrics()
    dead_letter_mirror = DeadLetterMirror(store, "events", lambda: topic, vitals)
    assert (dead_letter_mirror.send_pending(), dead_letter_mirror.send_pending()) == (50, 0)
    assert (sorted(topic.has), vitals.mirrored) == (list(range(50)), 50)


def test_what_another_store_refused_is_sent_too(store: BulkLineageMeta, tmp_path: Path) -> None:
    with open_store(f"sqlite:///{tmp_path}/lake.db") as lake:
        store.merge(WriteBatch(dead_letters=letters(2)))
        lake.bulk.merge(WriteBatch(dead_letters=letters(3)[2:]))
        topic = Topic()
        dead_letter_mirror = DeadLetterMirror(store, "events", lambda: topic, WriterMetrics(), others=[lake.bulk])
        assert (dead_letter_mirror.send_pending(), dead_letter_mirror.send_pending()) == (3, 0)
    assert sorted(topic.has) == [0, 1, 2]


def test_what_came_from_elsewhere_has_no_topic(store: BulkLineageMeta) -> None:
    store.merge(WriteBatch(dead_letters=[*letters(2, "log"), *letters(2, topic="others")]))
    topic = Topic()
    assert DeadLetterMirror(store, "events", lambda: topic, WriterMetrics()).send_pending() == 0
    assert not store.unsent_dead_letters(WHERE.cluster, "", 10)
    assert len(store.unsent_dead_letters(WHERE.cluster, "others", 10)) == 2


def test_who_dies_before_he_could_say_that_it_was_sent_leaves_it_to_the_next(store: BulkLineageMeta) -> None:
    store.merge(WriteBatch(dead_letters=letters(1)))

    class Killed(Topic):
        def send(self, letters: Sequence[DeadLetter]) -> None:
            super().send(letters)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        DeadLetterMirror(store, "events", Killed, WriterMetrics()).send_pending()
    topic = Topic()
    assert DeadLetterMirror(store, "events", lambda: topic, WriterMetrics()).send_pending() == 1
    assert topic.has == [0]


def test_a_topic_that_is_away_is_tried_again_and_holds_nobody_up(
    store: BulkLineageMeta, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(dead_letter_mirror, "_LOOK_SECONDS", 0.001)
    store.merge(WriteBatch(dead_letters=letters(3)))
    topic, vitals = Topic(TransientError("nobody answers"), TransientError("nobody answers")), WriterMetrics()
    with DeadLetterMirror(store, "events", lambda: topic, vitals):
        until(lambda: topic.has, "letters on the topic", PATIENCE)
        store.merge(WriteBatch(dead_letters=letters(4)))
        vitals.dead_letters = 4
    assert (sorted(topic.has), topic.is_closed) == ([0, 1, 2, 3], True), "what came last goes before it ends"
    assert vitals.mirror_errors == 2
    assert [each.getMessage() for each in caplog.records] == [
        "dead letters wait in the store's table for their topic: nobody answers"
    ]
