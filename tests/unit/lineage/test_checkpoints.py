"""Which batch of which checkpoint made a snapshot: no other question shows a snapshot's batch."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID

import pytest
from sqlalchemy import Connection

from headwater.errors import ConfigurationError
from headwater.events import Committed, Input, JobName, JobStarted, LineageDeleted, Output
from headwater.events.administration import LineageScope
from headwater.events.jobs import JobType, StreamDetails
from headwater.lineage.questions.checkpoints import checkpoints
from headwater.lineage.questions.names import UnknownNameError
from tests.kit.lineage.scripted_producer import ScriptedProducer, at, place, store
from tests.kit.stores import memory_connection

QUERY = UUID(int=77)
JOB = JobName(name="shop.orders")


@pytest.fixture
def producer() -> ScriptedProducer:
    """A stream with two batches, and a statement that wrote the same table."""
    producer = ScriptedProducer(1, "shop")
    stream = StreamDetails(query=QUERY, checkpoint="s3://lake/checkpoints/orders")
    producer.emit(0, JobStarted, job_type=JobType.STREAMING, job=JOB, stream=stream)
    for batch in (4, 5):
        inputs, outputs = (Input(**place("raw"), snapshot=batch),), (Output(**place("orders"), snapshot=10 + batch),)
        stamped = {"job": JOB, "incarnation": QUERY, "batch_id": batch, "barrier": batch}
        producer.emit(batch, Committed, inputs=inputs, outputs=outputs, **stamped)
    producer.emit(7, Committed, barrier=7, outputs=(Output(**place("orders"), snapshot=16),))
    return producer


@pytest.fixture
def connection(producer: ScriptedProducer) -> Iterator[Connection]:
    with memory_connection() as opened:
        store(opened, producer)
        yield opened


def test_a_batch_of_a_checkpoint(connection: Connection) -> None:
    (found,) = checkpoints(connection, "orders@15").rows
    assert (found.job, found.batch, found.query) == ("shop.orders", 5, QUERY)
    assert (found.checkpoint, found.barrier, found.run) == ("s3://lake/checkpoints/orders", 5, UUID(int=1001))


def test_what_no_stream_made_has_no_batch(connection: Connection) -> None:
    (found,) = checkpoints(connection, "orders@16").rows
    assert (found.job, found.batch, found.query, found.barrier) == ("shop", None, None, 7)


def test_a_snapshot_that_nobody_knows_is_an_error(connection: Connection) -> None:
    with pytest.raises(UnknownNameError, match="99"):
        checkpoints(connection, "orders@99")
    with pytest.raises(ConfigurationError, match="Write orders@SNAPSHOT"):
        checkpoints(connection, "orders")


def test_what_was_deleted_is_not_shown(connection: Connection, producer: ScriptedProducer) -> None:
    producer.emit(20, LineageDeleted, of_job=JOB, scope=LineageScope.DATA, before=at(20))
    store(connection, producer)
    answer = checkpoints(connection, "orders@15")
    assert answer.rows == ()
    assert answer.limits
