"""Gives a new consumer group the offsets that it begins at, before anybody reads in it.

So a group that begins at the end of a topic has its place from then on, also if its first reader dies before it has
read anything, and a group that begins at the beginning is told of records that expire before it comes to them.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Final

from confluent_kafka import KafkaError, KafkaException, TopicPartition

from headwater.consumers.sources.kafka_client import TopicClient
from headwater.consumers.sources.local_log import KIND as LOG
from headwater.errors import ConfigurationError, TransientError
from headwater.journal import LocalLog
from headwater.journal.errors import LockedError
from headwater.lineage.bulk import BusPartition

_WAIT_SECONDS: Final = 20.0
_PAUSE_SECONDS: Final = 0.5
_OTHERS_READ: Final = frozenset(
    {KafkaError.UNKNOWN_MEMBER_ID, KafkaError.ILLEGAL_GENERATION, KafkaError.REBALANCE_IN_PROGRESS}
)


class GroupStart(str, Enum):
    """Where a consumer group begins that never committed an offset."""

    BEGINNING = "beginning"
    END = "end"


class KafkaGroup:
    """A consumer group of a topic, as somebody sees it who doesn't read in it."""

    def __init__(
        self, settings: Mapping[str, str], topic: str, group: str, pause: Callable[[float], object] = time.sleep
    ) -> None:
        self._open: Final = partial(TopicClient, settings, topic, group)
        self._group: Final = group
        self._pause: Final = pause

    def has_begun(self) -> bool:
        """Return whether the group has an offset of the topic. A topic that doesn't exist has none."""
        with closing(self._open()) as topic, topic.explained():
            return bool(topic.committed(topic.describe()))

    def begin(self, start: GroupStart | None, offsets: Mapping[BusPartition, int]) -> None:
        """Commit an offset for each partition that has none: that in `offsets`, else where `start` says.

        With no `start`, other partitions stay without: they are read from their beginning, as new ones are. A
        TransientError while others are in the group who haven't begun in this topic.
        """
        with closing(self._open()) as topic, topic.explained():
            numbers = topic.describe()
            if not numbers:
                return
            topic.id = topic.fetch_id()
            new: list[TopicPartition] = []
            for each in sorted(set(numbers) - set(topic.committed(numbers))):
                at = offsets.get(topic.partition(each))
                if at is None and start is not None:
                    low, high = topic.limits(each)
                    at = low if start is GroupStart.BEGINNING else high
                if at is not None:
                    new.append(topic.place(each, at))
            if new:
                self._commit(topic, new, numbers)

    def _commit(self, topic: TopicClient, new: list[TopicPartition], numbers: list[int]) -> None:
        """Kafka takes no offsets from outside while a group has members. If those have begun in this topic, nothing is
        to do; members of another topic are waited for, as they may be about to leave."""
        deadline = time.monotonic() + _WAIT_SECONDS
        while True:
            try:
                topic.consumer.commit(offsets=new, asynchronous=False)
            except KafkaException as e:
                if e.args[0].code() not in _OTHERS_READ:
                    raise
            else:
                return
            if topic.committed(numbers):
                return
            if time.monotonic() > deadline:
                raise TransientError(
                    f"others are in the group {self._group} and have no offsets of {topic.name}, so nobody can say "
                    "where it begins: stop them first, or choose another name"
                )
            self._pause(_PAUSE_SECONDS)


class LogGroup:
    """A consumer group of a local log."""

    def __init__(self, directory: Path, group: str) -> None:
        if not directory.is_dir():
            raise ConfigurationError(
                f"{directory} isn't there: name the directory that drivers write to (spark.headwater.log.dir)"
            )
        self._log: Final = LocalLog.open(directory)
        self._group: Final = group
        self._place: Final = f"{socket.gethostname()}:{directory.resolve()}"

    def has_begun(self) -> bool:
        """Return whether the group has a cursor in the log."""
        return self._log.has_group(self._group)

    def begin(self, start: GroupStart | None, offsets: Mapping[BusPartition, int]) -> None:
        """Make a cursor in each partition, unless the group has one. An offset that the log doesn't reach is of another
        log that was in its place: then the partition is read from its beginning."""
        if start is None or self.has_begun():
            return
        for name in self._log.partitions():
            reader = self._log.reader(name)
            first, end = reader.first_offset(), reader.next_offset()
            at = offsets.get(BusPartition(LOG, self._place, int(name.rpartition("-")[2])))
            if at is None:
                at = first if start is GroupStart.BEGINNING else end
            try:
                reader.cursor(self._group, start=at if at <= end else first).close()
            except LockedError:  # a member has it, which began a moment ago
                continue


class ReadOnlyGroup:
    """A group of what is only read from its beginning, such as an archive."""

    def __init__(self, place: str) -> None:
        self._place: Final = place

    def has_begun(self) -> bool:
        """Return False: the source itself knows where it was."""
        return False

    def begin(self, start: GroupStart | None, offsets: Mapping[BusPartition, int]) -> None:  # noqa: ARG002
        """Raise a ConfigurationError for another start than the beginning."""
        if start is GroupStart.END:
            raise ConfigurationError(f"{self._place} is read from its beginning: leave --start away")
