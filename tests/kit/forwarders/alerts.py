"""Rules, events, and the alerts that come of them, with a clock that a test sets."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any
from uuid import UUID

from headwater.events import Committed, DatasetId, Event, JobName, Output, TableName
from headwater.events.catalog import AlterTable, CreateTable, DropTable
from headwater.events.changes import TableChange
from headwater.events.column_lineage import ColumnLineage, Derivation
from headwater.events.fingerprints import fingerprint_of
from headwater.events.health import Gap, GapReason
from headwater.events.jobs import (
    CommitKind,
    ErrorDetails,
    JobLineage,
    JobStatus,
    JobStatusChanged,
    OverwriteScope,
    Sink,
    SinkSchema,
    SourceSchema,
    StatementFailed,
)
from headwater.events.tables import Column, Table
from headwater.forwarders.alerts.evaluation import AlertEvaluator
from headwater.forwarders.alerts.forwarder import DAY
from headwater.forwarders.alerts.rule_file import RuleFile, read_rule_file
from headwater.forwarders.alerts.store import AlertStore
from headwater.testing.examples import CONTEXT

NOON = datetime(2026, 3, 1, 12, tzinfo=timezone.utc)
HOUR = 3600.0
DESTINATIONS = '[destinations.pager]\ntype = "command"\ncommand = ["/bin/true"]\n'


def rule_file(folder: Path, rules: str, destinations: str = DESTINATIONS) -> RuleFile:
    path = folder / "rules.toml"
    path.write_text(f"{destinations}\n{rules}", "utf-8")
    return read_rule_file(path)


def stamp(number: int, at: datetime = NOON, job: str = "etl") -> dict[str, Any]:
    return {
        "producer": UUID(int=7),
        "sequence": number,
        "family_sequence": number,
        "time": at,
        "job": JobName(name=job),
        "run": UUID(int=number),
    }


def table(name: str) -> dict[str, Any]:
    return {
        "dataset": DatasetId(namespace="s3://lake", name=f"w/sales/{name}"),
        "table": TableName(catalog="lake", database="sales", table=name),
    }


def identified(name: str) -> dict[str, Any]:
    names = table(name)
    return {"context": CONTEXT, "identifier": names["table"], "dataset": names["dataset"]}


def failed(number: int, at: datetime = NOON, job: str = "etl", **more: Any) -> JobStatusChanged:
    fields = {"status": JobStatus.FAILED, "error": ErrorDetails(type="SparkException", message="Job aborted"), **more}
    return JobStatusChanged(**{**stamp(number, at, job), **fields})


def statement_failed(number: int, at: datetime = NOON) -> StatementFailed:
    error = ErrorDetails(type="AnalysisException", message="no such table")
    return StatementFailed(**stamp(number, at), error=error, outputs=(Sink(**table("daily")),))


def gap(number: int, reason: GapReason = GapReason.SPOOL_LIMIT, at: datetime = NOON, **more: Any) -> Gap:
    return Gap(**{**stamp(number, at), "reason": reason, "detail": "the spool was full", **more})


def committed(
    number: int,
    at: datetime,
    name: str = "daily",
    kind: CommitKind = CommitKind.APPEND,
    replaced: OverwriteScope = OverwriteScope.UNKNOWN,
) -> Committed:
    output = Output(**table(name), snapshot=number, commit_kind=kind, replaced=replaced)
    return Committed(**stamp(number, at), barrier=number, outputs=(output,))


def lineage(number: int, job: str, *columns: str, at: datetime = NOON, source: str = "orders") -> JobLineage:
    """A job that reads these columns, nested ones with dots, and writes a table of its own."""
    shape: dict[str, Any] = {
        "inputs": (
            SourceSchema(
                **table(source), columns=(Column(name="id", type='"long"'), Column(name="amount", type='"double"'))
            ),
        ),
        "outputs": (SinkSchema(**table(f"of_{job}")),),
        "columns": tuple(
            ColumnLineage(
                output=0, input=0, source=tuple(each.split(".")), target=("x",), derivation=Derivation.IDENTITY
            )
            for each in columns
        ),
    }
    return JobLineage(**stamp(number, at, job), fingerprint=fingerprint_of(**shape), **shape)


def altered(number: int, *changes: TableChange, at: datetime = NOON, name: str = "orders") -> AlterTable:
    return AlterTable(**stamp(number, at, "ddl"), **identified(name), changes=changes)


def dropped(number: int, at: datetime = NOON, name: str = "orders") -> DropTable:
    return DropTable(**stamp(number, at, "ddl"), **identified(name))


def replaced(number: int, *columns: tuple[str, str], at: datetime = NOON, name: str = "orders") -> CreateTable:
    described = Table(columns=tuple(Column(name=each, type=f'"{type_name}"') for each, type_name in columns))
    return CreateTable(**stamp(number, at, "ddl"), **identified(name), table=described, replaced=True)


class Rules:
    """An evaluator with its store. Its clock stands where a test puts it."""

    def __init__(self, file: RuleFile, directory: Path | None = None, max_age: float = DAY) -> None:
        self.store = AlertStore(directory)
        self._evaluator = AlertEvaluator(file, self.store, max_age)

    def see(self, events: Iterable[Event], now: datetime = NOON + timedelta(minutes=1)) -> None:
        for event in events:
            with self.store.transaction():
                self._evaluator.take(event, event.time.timestamp(), now.timestamp())

    def tick(self, now: datetime, caught_up_at: datetime | None = None) -> None:
        at = None if caught_up_at is None else caught_up_at.timestamp()
        with self.store.transaction():
            self._evaluator.take_time(at, now.timestamp())

    def alerts(self, destination: str = "pager") -> list[dict[str, Any]]:
        return [json.loads(each.body) for each in self.store.messages(destination, most=100_000)]

    def texts(self, destination: str = "pager") -> list[str]:
        return [each["text"] for each in self.alerts(destination)]
