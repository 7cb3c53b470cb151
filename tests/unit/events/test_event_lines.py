"""What the line of each kind of event says."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from headwater.errors import TerminalError
from headwater.events import Committed, Input, JobStatusChanged, Output, TableName
from headwater.events.avro import UnknownEvent
from headwater.events.catalog import ModificationCause, ModificationEffect
from headwater.events.envelope import Event
from headwater.events.jobs import CommitKind, ErrorDetails, JobStatus
from headwater.events.kinds import KINDS
from headwater.events.names import DatasetId, JobName
from headwater.events.presentation import RecordOrigin, Severity, Undecodable, format_line, line_of, undecoded_line
from headwater.events.presentation import phrases as words
from headwater.events.scalars import Format
from headwater.events.tables import Database, Transform
from headwater.testing.examples import EXAMPLES

LINES = (Path(__file__).parent / "lines.txt").read_text(encoding="utf-8").splitlines()
"""Written by hand: what the lines of the examples say, behind the time."""
NAMES = (("sales", "daily"), ("raw", "orders"))
NOON = datetime(2026, 3, 1, 12, tzinfo=timezone.utc)
ORIGIN = RecordOrigin("partition-0000", 41, NOON, {"kind": "InventedLater"})


def example(kind: str, **update: Any) -> Event:
    return next(event for event in EXAMPLES if event.kind == kind).model_copy(update=update)


def text(event: Event) -> str:
    return line_of(event).text


@pytest.mark.parametrize(("event", "line"), list(zip(EXAMPLES, LINES, strict=True)), ids=lambda each: str(each)[:12])
def test_the_line_of(event: Event, line: str) -> None:
    assert format_line(line_of(event)) == f"2026-03-01 12:00:{event.sequence:02}.000Z  {line}"


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_every_kind_says_something(kind: type[Event]) -> None:
    assert text(example(kind.__name__))


@pytest.mark.parametrize(
    ("event", "said"),
    [
        (
            example("DropView", effect=ModificationEffect.UNKNOWN),
            "lake.sales.today (it isn't known whether it took effect)",
        ),
        (example("DropView", cause=ModificationCause.PROCEDURE), "lake.sales.today (by a procedure)"),
        (example("Truncate", partitions=(), parent=8, produced=9), "lake.sales.daily: all rows 8→9"),
        (example("Truncate", partitions=(), on_branch="audit"), "lake.sales.daily branch audit: all rows"),
        (example("AlterDatabase", new_database=Database(location="s3://b")), "lake.sales moved to s3://b"),
        (example("AlterTable", changes=()), "lake.sales.orders: (what changed isn't known)"),
        (example("JobStatusChanged", status=JobStatus.ENDED, inferred=False, signal=None), "ENDED (how is not known)"),
        (
            JobStatusChanged(status=JobStatus.FAILED, exit_code=3, error=ErrorDetails(type="a.b.C", message="x\ny")),
            "FAILED exit code 3: C: x",
        ),
        (
            Committed(barrier=1, inputs=tuple(Input(dataset=DatasetId(namespace="n", name=str(i))) for i in range(9))),
            "read n/0, n/1, n/2, n/3, n/4, n/5, 3 more",
        ),
        (
            Committed(
                barrier=1,
                inputs=(Input(dataset=None, table=TableName(catalog="c", database="d", table="a"), snapshot=7),),
                outputs=(
                    Output(dataset=None, table=TableName(catalog="c", database="d", table="b"), snapshot=8, parent=7),
                ),
            ),
            "c.d.b UNKNOWN 7→8; read c.d.a@7",
        ),
        (
            Committed(
                barrier=1,
                outputs=tuple(
                    Output(dataset=DatasetId(namespace="n", name="t"), format=each, branch="b", made_from=())
                    for each in (Format.ICEBERG, Format.PARQUET)
                ),
            ),
            "n/t branch b UNKNOWN →?; n/t branch b UNKNOWN",
        ),
    ],
)
def test_what_is_special_is_said(event: Event, said: str) -> None:
    assert text(event) == said


def test_names_do_nothing_to_a_terminal_and_break_no_line() -> None:
    evil = TableName(catalog="c", database="\x1b[2J", table="a\nb\u202e")
    assert format_line(line_of(example("DropTable", identifier=evil))).endswith(r"c.\x1b[2J.a\nb\u202e PURGE")


def test_colours_say_what_asks_for_attention() -> None:
    gap, commit = line_of(example("Gap")), line_of(example("Committed"))
    assert (gap.severity, commit.severity) == (Severity.BAD, Severity.MADE)
    assert "\x1b[31mGap" in format_line(gap, color=True)
    assert "\x1b" not in format_line(gap)


@pytest.mark.parametrize(
    ("column", "said"),
    [(Transform(name="bucket", arguments=("4",), columns=(("a", "b"),)), "bucket(4, a.b)"), (Transform(), "identity")],
)
def test_transforms(column: Transform, said: str) -> None:
    assert words.transform(column) == said


def test_types_are_as_in_sql() -> None:
    assert words.type_name('{"type":"array","elementType":"long","containsNull":true}') == "array<bigint>"
    assert words.type_name("what is this") == "what is this"


def test_what_is_no_event_is_said_to_be_none() -> None:
    known = example("Committed")
    for what, said in (
        (UnknownEvent(b"", b"\1\2"), "InventedLater     -  a newer headwater wrote this: schema 0102 (offset 41"),
        (
            UnknownEvent(b"", b"\1\2", "New", 7),
            "New               -  a newer headwater wrote this: schema 0102 version 7",
        ),
        (UnknownEvent(b"", b"\1\2", "Committed", 2, known), "(of the newer version 2: there may be more to it)"),
        (Undecodable(b"", TerminalError("torn")), "InventedLater     -  no event: torn (offset 41 of partition-0000)"),
    ):
        assert said in format_line(undecoded_line(what, ORIGIN))


def test_the_readme_shows_a_line_as_it_is() -> None:
    made, read = (TableName(catalog="lake", database=database, table=table) for database, table in NAMES)
    commit = Committed(
        time=NOON + timedelta(seconds=19),
        job=JobName(name="orders_etl"),
        barrier=1,
        inputs=(Input(dataset=None, table=read, snapshot=7),),
        outputs=(
            Output(
                dataset=None,
                table=made,
                commit_kind=CommitKind.APPEND,
                parent=812,
                snapshot=813,
                rows=31_337,
                made_from=(0,),
            ),
        ),
    )
    assert f"\n{format_line(line_of(commit))}\n" in (Path(__file__).parents[3] / "README.md").read_text(
        encoding="utf-8"
    )
