"""Dead letters on their topic: each at least once, whatever is away or killed."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from headwater.consumers.writer import mirror
from headwater.consumers.writer.mirror import Mirror
from headwater.consumers.writer.vitals import Vitals
from headwater.errors import TransientError
from headwater.lineage.bulk import BulkLineageMeta, DeadLetter, Partition, Reason, Work
from headwater.lineage.store import open_store

WHERE = Partition("cluster", "topic-id", 2)
PATIENCE = 60.0


def letters(count: int, source: str = "kafka", topic: str = "events") -> list[DeadLetter]:
    return [
        DeadLetter(Reason.UNDECODABLE, "no event", source, WHERE, number, b"x", topic_name=topic)
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
    with open_store(f"sqlite:///{tmp_path}/store.db") as opened:
        yield opened.bulk


def test_what_waits_is_sent_once(store: BulkLineageMeta) -> None:
    store.merge(Work(letters=letters(50)))
    topic, vitals = Topic(), Vitals()
    mirror = Mirror(store, "events", lambda: topic, vitals)
    assert (mirror.step(), mirror.step()) == (50, 0)
    assert (sorted(topic.has), vitals.mirrored) == (list(range(50)), 50)


def test_what_another_store_refused_is_sent_too(store: BulkLineageMeta, tmp_path: Path) -> None:
    with open_store(f"sqlite:///{tmp_path}/lake.db") as lake:
        store.merge(Work(letters=letters(2)))
        lake.bulk.merge(Work(letters=letters(3)[2:]))
        topic = Topic()
        mirror = Mirror(store, "events", lambda: topic, Vitals(), others=[lake.bulk])
        assert (mirror.step(), mirror.step()) == (3, 0)
    assert sorted(topic.has) == [0, 1, 2]


def test_what_came_from_elsewhere_has_no_topic(store: BulkLineageMeta) -> None:
    store.merge(Work(letters=[*letters(2, "log"), *letters(2, topic="others")]))
    topic = Topic()
    assert Mirror(store, "events", lambda: topic, Vitals()).step() == 0
    assert not store.unsent_letters(WHERE.cluster, "", 10)
    assert len(store.unsent_letters(WHERE.cluster, "others", 10)) == 2


def test_who_dies_before_he_could_say_that_it_was_sent_leaves_it_to_the_next(store: BulkLineageMeta) -> None:
    store.merge(Work(letters=letters(1)))

    class Killed(Topic):
        def send(self, letters: Sequence[DeadLetter]) -> None:
            super().send(letters)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Mirror(store, "events", Killed, Vitals()).step()
    topic = Topic()
    assert Mirror(store, "events", lambda: topic, Vitals()).step() == 1
    assert topic.has == [0]


def test_a_topic_that_is_away_is_tried_again_and_holds_nobody_up(
    store: BulkLineageMeta, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(mirror, "_LOOK_SECONDS", 0.001)
    store.merge(Work(letters=letters(3)))
    topic, vitals = Topic(TransientError("nobody answers"), TransientError("nobody answers")), Vitals()
    with Mirror(store, "events", lambda: topic, vitals):
        deadline = time.monotonic() + PATIENCE
        while not topic.has and time.monotonic() < deadline:
            time.sleep(0.001)
        store.merge(Work(letters=letters(4)))
        vitals.letters = 4
    assert (sorted(topic.has), topic.is_closed) == ([0, 1, 2, 3], True), "what was told last goes before it ends"
    assert vitals.mirror_troubles == 2
    assert [each.getMessage() for each in caplog.records] == [
        "dead letters wait in the store's table for their topic: nobody answers"
    ]
