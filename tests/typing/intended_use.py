"""How a user's program is meant to look to a type checker; checked in the tree and against the installed wheel.

Every line here must pass mypy --strict and basedpyright; tests/packaging/wrong_use.txt is what both must refuse.
"""

from __future__ import annotations

from typing_extensions import assert_type

from headwater.cli import main
from headwater.cli.output import CommandOutput, JsonOutput, TextOutput
from headwater.errors import ConfigurationError, HeadwaterError, TransientError
from headwater.events import Event
from headwater.events.names import DatasetId, JobName, TableName
from headwater.spi import DurableListener, Listener, ListenerContext, ListenerFactory, RecordBatch, SpoolPosition


def retry_by_type(error: HeadwaterError) -> bool:
    return isinstance(error, TransientError)


class Counting(Listener):
    def __init__(self) -> None:
        self.count = 0

    def on_event(self, event: Event) -> None:
        self.count += 1


class Archive(DurableListener):
    def handle(self, batch: RecordBatch) -> SpoolPosition | None:
        return batch.end

    def close(self, timeout: float) -> None:
        """It returns nothing."""


class ArchiveFactory:
    def create(self, context: ListenerContext) -> Archive:
        return Archive()


def a_listener_has_only_what_its_author_needs() -> None:
    listeners: list[Listener | DurableListener] = [Counting(), Archive()]
    factory: ListenerFactory = ArchiveFactory()
    print(listeners, factory)


def names_are_texts() -> None:
    orders = DatasetId(namespace="s3://lake", name="warehouse/orders")
    assert_type(orders.namespace, str)
    assert_type(JobName(name="orders_etl").name, str)
    assert_type(str(TableName(catalog="ice", database="db", table="orders")), str)


def outputs_are_exchangeable() -> None:
    outputs: list[CommandOutput] = [TextOutput(), JsonOutput()]
    for output in outputs:
        output.record("job", {"name": "orders_etl"})


def commands_end_in_a_code() -> None:
    assert_type(main(["--version"]), int)
    assert_type(retry_by_type(ConfigurationError("no such key")), bool)
