"""Which topic it is that has a name now. One that was deleted and made again has another id, and is another one; what
of the older one was never read can't be read any more.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from confluent_kafka import TopicCollection
from confluent_kafka.admin import AdminClient

from headwater.consumers.sources.api import Hole
from headwater.errors import TransientError
from headwater.events.health import GapReason
from headwater.lineage.bulk import Partition

_ASK_SECONDS: Final = 20.0


class TopicIdentity:
    """Questions raise a KafkaException where nobody answers them."""

    def __init__(self, settings: Mapping[str, Any], name: str) -> None:
        self._admin = AdminClient(dict(settings))
        self._name = name
        self.id = ""
        """Of the one that is read; empty until a broker has answered."""
        self._former: set[str] = set()
        self._seen: dict[int, tuple[int, int]] = {}

    @property
    def is_younger(self) -> bool:
        """Than one that was read before it."""
        return bool(self._former)

    @property
    def words(self) -> str:
        return f"{self._name} was deleted and made again: the new topic is read from its beginning"

    def serve(self) -> None:
        """What its client has to say is said."""
        self._admin.poll(0)

    def asked(self) -> str:
        """The id of the topic that is there now."""
        asked = self._admin.describe_topics(TopicCollection([self._name]), request_timeout=_ASK_SECONDS)
        return str(asked[self._name].result().topic_id)

    def is_another(self) -> bool:
        """A broker that hasn't heard of the new one yet says nothing of it."""
        return self.asked() not in {self.id, *self._former}

    def seen(self, reached: Mapping[int, tuple[int, int]]) -> None:
        """Of partitions, when it was this topic still: what comes next, and where they end."""
        self._seen.update(reached)

    def become(
        self, found: str, cluster: str, mine: Collection[int], stored: Mapping[Partition, int] | None
    ) -> list[Hole]:
        """From now on it is this one; the holes that are left of the one before. `mine` are partitions that nobody else
        reads, `stored` is how far the store is with all of them."""
        if found in self._former:
            raise TransientError(f"{self._name}: not all brokers know yet that it was deleted and made again")
        holes = list(self._holes(cluster, mine, stored or {})) if self.id else []
        if self.id:
            self._former.add(self.id)
        self.id = found
        self._seen.clear()
        return holes

    def _holes(self, cluster: str, mine: Collection[int], stored: Mapping[Partition, int]) -> Iterator[Hole]:
        """What came since it was last seen is of the older one or of the new one, which nobody can tell: it isn't
        counted as read. What nobody saw the end of has none."""
        for number, (at, end) in sorted(self._seen.items()):
            where = Partition(cluster, self.id, number)
            if number in mine or stored.get(where, at + 1) <= at:
                yield Hole(where, at, end if end > at else None, GapReason.LOG_RECREATED)
