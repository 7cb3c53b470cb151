"""A writer with a fault, to see that rounds find it: python -m tests.kit.writers.broken FAULT write …"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from headwater.cli.app import main


def commit_first() -> None:
    """Offsets are Kafka's, and are committed before the rows are stored."""
    from confluent_kafka import Consumer, TopicPartition

    from headwater.consumers.sources.kafka import KafkaSource

    poll = KafkaSource.poll

    def assigned(_: KafkaSource, client: Consumer, partitions: list[TopicPartition]) -> None:
        client.incremental_assign(partitions)

    def polled(self: KafkaSource, most: int, timeout: float) -> Any:
        batch = poll(self, most, timeout)
        if batch.next:
            self.done(batch.next)
        return batch

    _put(KafkaSource, "_on_assign", assigned)
    _put(KafkaSource, "poll", polled)


def drop_what_fails() -> None:
    """A batch that met a database that was away isn't tried again."""
    from headwater.consumers.writer.pipeline import BatchResult
    from headwater.consumers.writer.store_pipeline import PreparedBatch, StorePipeline
    from headwater.errors import TransientError

    store = StorePipeline.store

    def stored(self: StorePipeline, prepared: PreparedBatch) -> BatchResult:
        try:
            return store(self, prepared)
        except TransientError:
            return BatchResult()

    _put(StorePipeline, "store", stored)


def two_transactions() -> None:
    """Offsets are stored first, in a transaction of their own."""
    from headwater.lineage.bulk.api import WriteBatch
    from headwater.lineage.bulk.database import DatabaseBulkMeta

    merge = DatabaseBulkMeta.merge

    def merged(self: DatabaseBulkMeta, work: WriteBatch) -> Any:
        merge(self, WriteBatch(offsets=work.offsets))
        return merge(self, replace(work, offsets=()))

    _put(DatabaseBulkMeta, "merge", merged)


def believe() -> None:
    """What was in the store is there still, whoever may have taken it away."""
    from headwater.lineage.bulk import database

    module: Any = database
    module.hold_epoch = lambda *_, **__: None


def _put(where: type, name: str, what: Callable[..., Any]) -> None:
    setattr(where, name, what)


WAYS: Final[Mapping[str, Callable[[], None]]] = {
    "believe": believe,
    "commit-first": commit_first,
    "drop-what-fails": drop_what_fails,
    "two-transactions": two_transactions,
}

if __name__ == "__main__":
    WAYS[sys.argv[1]]()
    del sys.argv[1]
    sys.exit(main())
