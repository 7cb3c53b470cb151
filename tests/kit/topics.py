"""Topics of a test's own on the broker that tests share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from uuid import uuid4

from confluent_kafka.admin import AdminClient, NewTopic

from tests.kit.waiting import until

APPEND_TIME: Final[Mapping[str, str]] = {"message.timestamp.type": "LogAppendTime"}
"""As a topic of events should be: only then a reader knows by when everything has come."""


def new_topic(servers: str, prefix: str, partitions: int = 1, settings: Mapping[str, str] = APPEND_TIME) -> str:
    """Create a topic, and return its name, which nobody else has."""
    return create_topic(servers, f"{prefix}-{uuid4()}", partitions, settings)


def create_topic(servers: str, name: str, partitions: int = 1, settings: Mapping[str, str] = APPEND_TIME) -> str:
    """Create a topic of this name, and return the name."""
    admin = AdminClient({"bootstrap.servers": servers})  # it has to live until the answer is there
    admin.create_topics([NewTopic(name, partitions, 1, config=dict(settings))])[name].result()
    return name


def recreate_topic(admin: AdminClient, name: str, partitions: int) -> None:
    """Delete a topic and create it again: its name is free a moment after the older one is gone."""
    admin.delete_topics([name])[name].result()
    until(
        lambda: admin.create_topics([NewTopic(name, partitions, 1)])[name].exception() is None,
        "the name of a topic that was deleted",
        pause=0.1,
    )
