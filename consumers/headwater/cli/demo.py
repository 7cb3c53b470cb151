"""`headwater demo`: follow events on their way. It grows with the project; for now the way ends behind the codec."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headwater.cli.exits import Exit
from headwater.cli.flags import Flags
from headwater.cli.output import Output
from headwater.events.avro import Codec, DecodeError, current_schema
from headwater.events.envelope import Event
from headwater.events.fingerprints import fingerprint_of
from headwater.events.ids import uuid7
from headwater.events.jobs import (
    CommitKind,
    Committed,
    ErrorDetails,
    Input,
    ShapedSink,
    ShapedSource,
    StatementFailed,
)
from headwater.events.jobs import (
    Output as Made,
)
from headwater.events.names import DatasetId, JobName, TableName
from headwater.events.parts import join
from headwater.events.producer import Producer
from headwater.events.scalars import Format

SECRET = "tr0ub4dor"  # noqa: S105 - the demo shows that it doesn't get through


JOB = JobName(name="orders_etl.lake.sales.daily")


class _Bus:
    """Keeps what a producer appends, in place of the spool."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.data: list[bytes] = []

    def __call__(self, event: Event, data: bytes) -> None:
        self.events.append(event)
        self.data.append(data)


def main(arguments: Sequence[str], output: Output) -> int:
    """Show an event's way through redaction, the producer's order, and the codec, there and back."""
    Flags("headwater demo", str(main.__doc__)).parse_args(arguments)
    bus, producer = _Bus(), Producer("local-demo")
    commit = _commit(producer)
    _tell(output, bus, producer, commit)
    _read_back(output, bus)
    _cut_and_join(output, producer, commit)
    output.note("\nIn a Spark driver: headwater run job.py, see docs/install.md. Next: the bus, the lineage store.")
    return Exit.DONE


def _place(table: str) -> dict[str, Any]:
    return {
        "dataset": DatasetId(namespace="s3://acme-lake-prod", name=f"warehouse/sales/{table}"),
        "table": TableName(catalog="lake", database="sales", table=table),
        "format": Format.ICEBERG,
    }


def _commit(producer: Producer) -> Committed:
    """INSERT OVERWRITE daily SELECT … FROM orders JOIN customers"""
    read = {"orders": 8_234_827_348_273_482_734, "customers": 3_051_729_675_574_597_004}
    return Committed(
        job=JOB,
        run=uuid7(),
        barrier=producer.next_barrier(),
        fingerprint=fingerprint_of([ShapedSource(**_place(table)) for table in read], [ShapedSink(**_place("daily"))]),
        inputs=tuple(Input(**_place(table), snapshot=snapshot) for table, snapshot in read.items()),
        outputs=(
            Made(
                **_place("daily"),
                snapshot=5_179_299_526_185_056_830,
                parent=2_781_921_774_821_920_001,
                commit_kind=CommitKind.OVERWRITE,
                made_from=(0, 1),
            ),
        ),
    )


def _tell(output: Output, bus: _Bus, producer: Producer, commit: Committed) -> None:
    output.note("1. A Spark job commits, and a second statement fails with a password in its error.\n")
    url = f"jdbc:postgresql://etl:{SECRET}@db:5432/shop?user=etl&password={SECRET}"
    failed = StatementFailed(
        job=JOB, error=ErrorDetails(type="java.sql.SQLException", message=f"no connection to {url}")
    )
    for draft in (commit, failed):
        producer.emit(draft, bus)
    for event in bus.events:
        if isinstance(event, Committed):
            output.record("A commit, snapshot by snapshot", _lineage(event))
        if isinstance(event, StatementFailed):
            output.record("\nA failure, the secret taken out before the event existed", {"error": event.error.message})


def _lineage(event: Committed) -> dict[str, object]:
    """Who made what from which version of what."""
    (made,) = event.outputs
    versions = {f"read {i.table}": f"@ {i.snapshot}" for i in event.inputs}
    return {"job": event.job, "barrier": event.barrier, **versions, f"made {made.table}": f"@ {made.snapshot}"}


def _read_back(output: Output, bus: _Bus) -> None:
    output.note(
        "\n2. On the wire: Avro, framed by the fingerprint of its schema, which readers find in their package.\n"
    )
    reader = Codec()
    rows = [
        (e.kind, e.sequence, len(d), current_schema(type(e)).fingerprint.hex(), reader.decode(d) == e)
        for e, d in zip(bus.events, bus.data, strict=True)
    ]
    output.table("Written and read", ("kind", "sequence", "bytes", "schema", "same after reading"), rows)
    found = any(SECRET.encode() in data for data in bus.data)
    output.record("\nThe password in those bytes", {"found": "yes" if found else "no"})
    try:
        reader.decode(bus.data[0][:100])
    except DecodeError as e:
        output.record("\nA message that was cut off is told as such", {"error": e})


def _cut_and_join(output: Output, producer: Producer, commit: Committed) -> None:
    output.note("\n3. A commit that read 20,000 directories is too large for one message: it becomes parts.\n")
    inputs = tuple(Input(dataset=DatasetId(namespace="s3://lake", name=f"clicks/hour={n}")) for n in range(20_000))
    (made,) = commit.outputs
    bus = _Bus()
    large = commit.model_copy(
        update={"inputs": inputs, "outputs": (made.model_copy(update={"made_from": (0, 19_999)}),)}
    )
    parts = producer.emit(large, bus)
    rows = [
        (f"{p.part.number} of {p.part.of}" if p.part else "whole", p.sequence, len(p.inputs), len(d))
        for p, d in zip(parts, bus.data, strict=True)
    ]
    output.table("Parts, each an event of its own", ("part", "sequence", "inputs", "bytes"), rows)
    whole = join(parts)
    output.record("\nJoined again", {"inputs": len(whole.inputs), "same": whole.inputs == large.inputs})
