"""A small history in the words of Paimon PIP-5's own queries, and what its tables have to say of it, by hand.

    catalog1:  orders ─┐                                                       catalog2:  other ── myTable
               customers ─┴─ myJob ── myTable ── report ── daily
               events ─────────────────────────── job_name ───────────────────────────── copies

Beside it is what must not show: a branch, a compaction beside data, a table without snapshots, a job that was deleted,
and the snapshots of catalog2, which a driver reports although the first one said that the catalog keeps none.
"""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any, Final
from uuid import UUID

from headwater.events import (
    CatalogId,
    CatalogOptionsDeclared,
    Committed,
    DatasetId,
    Event,
    Input,
    JobLineage,
    JobName,
    JobStarted,
    LineageDeleted,
    Output,
    TableName,
)
from headwater.events.administration import LineageScope
from headwater.events.base import StringMap
from headwater.events.catalog import CatalogContext, CreateBranch, DropBranch
from headwater.events.fingerprints import fingerprint_of
from headwater.events.jobs import (
    CommitKind,
    JobType,
    NamedCatalog,
    RangeStart,
    ReadMode,
    SinkSchema,
    SourceSchema,
    StartPosition,
)

NOON: Final = datetime(2026, 3, 1, 12, 0, tzinfo=timezone.utc)
PRODUCER: Final = UUID("01890a5d-ac96-774b-bcce-b302099a8057")
CATALOGS: Final = {
    "catalog1": CatalogId(type="paimon", location="file://host/warehouse1"),
    "catalog2": CatalogId(type="paimon", location="file://host/warehouse2"),
}


def place(table: str, catalog: str = "catalog1") -> dict[str, Any]:
    warehouse = CATALOGS[catalog].location.removeprefix("file://host")
    return {
        "dataset": DatasetId(namespace="file://host", name=f"{warehouse}/myDatabase.db/{table}"),
        "table": TableName(catalog=catalog, database="myDatabase", table=table),
    }


def read(table: str, snapshot: int | None, catalog: str = "catalog1", **more: Any) -> Input:
    fields: dict[str, Any] = {**place(table, catalog), "mode": ReadMode.STATE, **more}
    return Input(snapshot=snapshot, **fields)


def made(table: str, snapshot: int, catalog: str = "catalog1", **more: Any) -> Output:
    fields: dict[str, Any] = {**place(table, catalog), "commit_kind": CommitKind.APPEND, **more}
    return Output(snapshot=snapshot, **fields)


class Story:
    """Events of one producer, a minute between each and the next."""

    def __init__(self, producer: UUID = PRODUCER, began: datetime = NOON) -> None:
        self.events: list[Event] = []
        self._producer = producer
        self._began = began

    @property
    def now(self) -> datetime:
        return self._began + len(self.events) * timedelta(minutes=1)

    def emit(self, kind: type[Event], job: str | JobName | None = None, **fields: Any) -> None:
        number = len(self.events) + 1
        envelope: dict[str, Any] = {
            "producer": self._producer,
            "sequence": number,
            "family_sequence": number,
            "time": self.now,
        }
        envelope["job"] = JobName(name=job) if isinstance(job, str) else job
        self.events.append(kind(**{**envelope, **fields}))

    def commit(self, job: str, barrier: int, inputs: list[Input], outputs: list[Output], **more: Any) -> None:
        from_all = tuple(range(len(inputs)))
        from_all_inputs = tuple(each.model_copy(update={"made_from": from_all}) for each in outputs)
        self.emit(Committed, job, barrier=barrier, inputs=tuple(inputs), outputs=from_all_inputs, **more)

    def shape(self, job: str, inputs: list[Input], outputs: list[Output]) -> None:
        sources = tuple(SourceSchema(dataset=each.dataset, table=each.table) for each in inputs)
        sinks = tuple(SinkSchema(dataset=each.dataset, table=each.table) for each in outputs)
        names = {each.table.catalog for each in (*inputs, *outputs) if each.table}
        catalogs = tuple(NamedCatalog(name=name, id=CATALOGS[name]) for name in sorted(names))
        print_ = fingerprint_of(sources, sinks)
        self.emit(JobLineage, job, inputs=sources, outputs=sinks, fingerprint=print_, catalogs=catalogs)

    def options(self, catalog: str, location: CatalogId | None = None, **options: Any) -> None:
        place = CATALOGS[catalog] if location is None else location
        context = CatalogContext(name=catalog, class_name="org.apache.paimon.spark.SparkCatalog", id=place)
        self.emit(CatalogOptionsDeclared, context=context, **options)

    def start(self, job: str, run: int, *starts: StartPosition) -> None:
        self.emit(JobStarted, job, run=UUID(int=run), job_type=JobType.STREAMING, starts_at=starts)


def events(*, catalog2_keeps_data: bool = False) -> list[Event]:
    """All of it."""
    story = Story()
    story.options("catalog1", options=StringMap({"lineage-meta": "jdbc"}))
    story.options("catalog2", data_lineage=catalog2_keeps_data)
    _of_one_catalog(story)
    _of_the_other(story)
    _what_must_not_show(story)
    _of_branches(story)
    return story.events


def _of_one_catalog(story: Story) -> None:
    orders, customers = read("orders", 41), read("customers", 17)
    story.shape("myJob", [orders, customers], [made("myTable", 123)])
    story.commit("myJob", 1, [orders, customers], [made("myTable", 123)])
    newer = read("orders", 43, mode=ReadMode.CHANGES, since=RangeStart(snapshot=41))
    compacted = made("myTable", 125, commit_kind=CommitKind.COMPACT)
    story.commit("myJob", 2, [newer, customers], [compacted, made("myTable", 124)])
    story.start("report", 1, StartPosition(**place("myTable"), snapshot=120))
    story.start("report", 2, StartPosition(**place("myTable"), snapshot=123))
    story.commit("report", 4, [read("myTable", 123), read("rates", None)], [made("daily", 9)])
    story.commit("report", 5, [read("myTable", 124)], [made("daily", 10)])


def _of_the_other(story: Story) -> None:
    events = read("events", 10)
    story.shape("job_name", [events], [made("copies", 4, "catalog2")])
    story.commit("job_name", 7, [events], [made("copies", 4, "catalog2")])
    story.commit("job_name", 8, [read("events", 11)], [made("copies", 5, "catalog2")])
    story.commit("elsewhere", 1, [read("other", 1, "catalog2")], [made("myTable", 123, "catalog2")])


def _what_must_not_show(story: Story) -> None:
    story.options("catalog1", data_lineage=False)  # they are immutable: the first value holds
    story.commit("myJob", 3, [read("orders", 44, branch="debug", main=False)], [])
    story.commit("deleted", 1, [read("orders", 41)], [made("myTable", 122)])
    story.emit(LineageDeleted, of_job=JobName(name="deleted"), scope=LineageScope.ALL, before=story.now)


def _of_branches(story: Story) -> None:
    """One is there since it was made again, one was dropped."""
    context = CatalogContext(
        name="catalog1", class_name="org.apache.paimon.spark.SparkCatalog", id=CATALOGS["catalog1"]
    )
    known = place("myTable")
    about: dict[str, Any] = {
        "context": context,
        "identifier": known["table"],
        "dataset": known["dataset"],
        "generation": "1",
    }
    story.emit(CreateBranch, branch="fix", tag="eod", snapshot=123, **about)
    story.emit(DropBranch, branch="fix", **about)
    story.emit(CreateBranch, branch="fix", tag="late", snapshot=124, **about)
    story.emit(CreateBranch, branch="gone", tag="eod", snapshot=123, **about)
    story.emit(DropBranch, branch="gone", **about)


def minute(number: int) -> datetime:
    return NOON + number * timedelta(minutes=1)


D: Final = "myDatabase"
ROWS: Final[dict[str, dict[str, set[tuple[Any, ...]]]]] = {
    "catalog1": {
        "catalog_options": {("table-lineage", "true"), ("data-lineage", "true"), ("lineage-meta", "jdbc")},
        "source_job_lineage": {
            ("myJob", D, "orders", minute(2)),
            ("myJob", D, "customers", minute(2)),
            ("report", D, "myTable", minute(7)),
            ("report", D, "rates", minute(7)),
            ("job_name", D, "events", minute(9)),
        },
        "sink_job_lineage": {("myJob", D, "myTable", minute(2)), ("report", D, "daily", minute(7))},
        "source_snapshot_lineage": {
            ("myJob", 1, D, "orders", 41, minute(3)),
            ("myJob", 1, D, "customers", 17, minute(3)),
            ("myJob", 2, D, "orders", 43, minute(4)),
            ("myJob", 2, D, "customers", 17, minute(4)),
            ("report", 4, D, "myTable", 123, minute(7)),
            ("report", 5, D, "myTable", 124, minute(8)),
            ("job_name", 7, D, "events", 10, minute(10)),
            ("job_name", 8, D, "events", 11, minute(11)),
        },
        "sink_snapshot_lineage": {
            ("myJob", 1, D, "myTable", 123, minute(3)),
            ("myJob", 2, D, "myTable", 124, minute(4)),
            ("report", 4, D, "daily", 9, minute(7)),
            ("report", 5, D, "daily", 10, minute(8)),
        },
        "job_startup": {("report", D, "myTable", 123)},
        "table_branches": {(D, "myTable", "fix", "late", 124, minute(19))},
    },
    "catalog2": {
        "catalog_options": {("table-lineage", "true"), ("data-lineage", "false")},
        "source_job_lineage": {("elsewhere", D, "other", minute(12))},
        "sink_job_lineage": {("job_name", D, "copies", minute(9)), ("elsewhere", D, "myTable", minute(12))},
        "source_snapshot_lineage": set(),
        "sink_snapshot_lineage": set(),
        "job_startup": set(),
        "table_branches": set(),
    },
}
"""What each catalog's views hold. A branch is table lineage nonetheless: `myJob` reads `orders`."""
