"""Detects that a topic was deleted and created again. The new topic has another id, and unread records of the old one
are lost.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from confluent_kafka import KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from headwater.consumers.sources.api import OffsetGap
from headwater.errors import TransientError
from headwater.events.health import GapReason
from headwater.lineage.bulk import BusPartition

_ASK_SECONDS: Final = 20.0
_LOOK_SECONDS: Final = 2.0
_LIKE_KAFKA: Final = str.maketrans("+/", "-_")
"""librdkafka prints an id in plain base64, Kafka and its Java clients in the one for URLs."""


class TopicIdentity:
    """The id of a topic. Its methods raise a KafkaException if no broker answers."""

    def __init__(self, settings: Mapping[str, Any], name: str) -> None:
        self._admin = AdminClient(dict(settings))
        self._name = name
        self.id = ""
        """Of the one that is read; empty until a broker has answered."""
        self._former: set[str] = set()
        self._seen: dict[int, tuple[int, int]] = {}

    @property
    def is_younger(self) -> bool:
        """Whether an older topic of this name was read before."""
        return bool(self._former)

    @property
    def words(self) -> str:
        return f"{self._name} was deleted and made again: the new topic is read from its beginning"

    def poll(self) -> None:
        """Serve the client's callbacks."""
        self._admin.poll(0)

    def close(self) -> None:
        """Let go of the client, which would connect again and again for as long as it lives. Only once nothing is
        asked any more: librdkafka aborts the process if an answer comes while a client is destroyed."""
        if hasattr(self, "_admin"):
            del self._admin

    def fetch_id(self) -> str:
        """Return the id of the topic that has the name now, as Kafka's own tools print it."""
        asked = self._admin.describe_topics(TopicCollection([self._name]), request_timeout=_ASK_SECONDS)
        return str(asked[self._name].result().topic_id).translate(_LIKE_KAFKA)

    def is_another(self) -> bool:
        """Return whether the topic was recreated. A broker that hasn't noticed yet still reports the old id."""
        return self.fetch_id() not in {self.id, *self._former}

    def end_offsets(self, numbers: Collection[int]) -> dict[int, int]:
        """Return the end of each partition. It takes one request, on a connection of its own: on the consumer's each
        would wait behind a fetch that waits for records."""
        return self._offsets(numbers, OffsetSpec.latest())  # type: ignore[no-untyped-call]

    def first_offsets(self, numbers: Collection[int]) -> dict[int, int]:
        """Return the first offset of each partition."""
        return self._offsets(numbers, OffsetSpec.earliest())  # type: ignore[no-untyped-call]

    def _offsets(self, numbers: Collection[int], which: OffsetSpec) -> dict[int, int]:
        if not numbers:
            return {}
        asked = {TopicPartition(self._name, number): which for number in numbers}
        futures = self._admin.list_offsets(asked, request_timeout=_LOOK_SECONDS)
        try:
            return {place.partition: int(future.result().offset) for place, future in futures.items()}
        except KafkaException:
            self._admin.list_topics(self._name, timeout=_LOOK_SECONDS)  # else it goes on asking the former leaders
            raise

    def record_reached(self, reached: Mapping[int, tuple[int, int]]) -> None:
        """Record, for partitions of this topic, the next offset and the end."""
        self._seen.update(reached)

    def switch_to(
        self, found: str, cluster: str, mine: Collection[int], stored: Mapping[BusPartition, int] | None
    ) -> list[OffsetGap]:
        """Switch to a new id. Return the gaps that the old topic leaves.

        `mine` are partitions that only this reader has; `stored` are the offsets that the store has for all of them.
        """
        if found in self._former:
            raise TransientError(f"{self._name}: not all brokers know yet that it was deleted and made again")
        gaps = list(self._lost_ranges(cluster, mine, stored or {})) if self.id else []
        if self.id:
            self._former.add(self.id)
        self.id = found
        self._seen.clear()
        return gaps

    def _lost_ranges(
        self, cluster: str, mine: Collection[int], stored: Mapping[BusPartition, int]
    ) -> Iterator[OffsetGap]:
        """Yield the unread ranges. Records that arrived since the last check may belong to either topic, so they count
        as unread."""
        for number, (at, end) in sorted(self._seen.items()):
            where = BusPartition(cluster, self.id, number)
            if number in mine or stored.get(where, at + 1) <= at:
                yield OffsetGap(where, at, end if end > at else None, GapReason.LOG_RECREATED)
