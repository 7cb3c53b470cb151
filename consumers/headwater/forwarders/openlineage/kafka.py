"""Brings messages to a topic of Kafka.

The client's own transport logs what a broker refuses and goes on, so its messages and keys go through a producer of
ours that counts what was acknowledged.
"""

from __future__ import annotations

from collections.abc import Iterator

from openlineage.client.event_v2 import DatasetEvent, RunEvent
from openlineage.client.generated.parent_run import ParentRunFacet
from openlineage.client.serde import Serde

from headwater.forwarders.openlineage.mapping import OpenLineageEvent
from headwater.forwarders.openlineage.options import OpenLineageOptions
from headwater.forwarders.topic_producer import TopicProducer
from headwater.spi import CheckResult


class OpenLineageTopic:
    """A topic: keys are those of OpenLineage's own clients, so all runs of a job keep their order."""

    def __init__(self, servers: str, options: OpenLineageOptions) -> None:
        self._topic = TopicProducer(servers, options.topic, options.producer, options.request_timeout)

    def send(self, message: OpenLineageEvent) -> None:
        """Give a message to librdkafka; one that is too large for any broker is refused at once."""
        self._topic.send(key_of(message), Serde.to_json(message).encode())

    def finish(self) -> None:
        """Wait until all are acknowledged."""
        self._topic.finish()

    def check(self) -> Iterator[CheckResult]:
        yield from self._topic.check()

    def close(self) -> None:
        self._topic.close()


def key_of(message: OpenLineageEvent) -> str:
    """Return the key that OpenLineage's clients give a message: a run stands with the runs of its outermost parent."""
    if isinstance(message, DatasetEvent):
        return f"dataset:{message.dataset.namespace}/{message.dataset.name}"
    if not isinstance(message, RunEvent):
        return f"job:{message.job.namespace}/{message.job.name}"
    parent = (message.run.facets or {}).get("parent")
    if not isinstance(parent, ParentRunFacet):
        return f"run:{message.job.namespace}/{message.job.name}"
    job = parent.root.job if parent.root else parent.job
    return f"run:{job.namespace}/{job.name}"
