"""Makes events of what a store has: catalog modifications, job lineage and commits, for forwarders that begin with it.

Each function is pure: the same rows make the same events. Modifications are the events that made the rows, with their
ids. Job lineage and commits have ids of their own, because rows don't keep those of their events; a commit has its
job, incarnation and barrier, which is what targets know it by.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol
from uuid import UUID

from headwater.errors import TerminalError
from headwater.events import KINDS, Event
from headwater.events.catalog import CatalogContext, DatabaseModification, TableModification
from headwater.events.clock import moment_of
from headwater.events.jobs import Committed, JobLineage
from headwater.lineage.rows import hash_key

_BEGINS: Final = frozenset({"CreateDatabase", "CreateTable", "CreateView"})
_ENDS: Final = frozenset({"DropDatabase", "DropTable", "DropView"})
_APPLIED: Final = "APPLIED"
_SOURCE: Final = "SOURCE"


class StoredRow(Protocol):
    """A row by the names of its columns. Names of datasets, catalogs and places are joined to it."""

    def __getitem__(self, name: str, /) -> Any: ...


@dataclass(frozen=True)
class CommitRows:
    """A commit with its reads and writes. `made_from` has, by the id of a write, the ids of its reads."""

    commit: StoredRow
    reads: Sequence[StoredRow]
    writes: Sequence[StoredRow]
    made_from: Mapping[bytes, Sequence[bytes]]


@dataclass(frozen=True)
class LineageRows:
    """One variant of a job lineage, with its tables in order and its columns."""

    lineage: StoredRow
    tables: Sequence[StoredRow]
    columns: Sequence[StoredRow]
    time: int
    """When a commit named it last."""


def current_modifications(rows: Iterable[tuple[bytes, object, str, str]]) -> set[bytes]:
    """Return the ids of those modifications that made what there is now: of each table, view and database that isn't
    gone, those from its last creation on.

    Each row is an id, what was modified, the kind and the effect. They come in the order of time.
    """
    since: dict[object, list[bytes]] = {}
    for id_, subject, kind, effect in rows:
        if effect != _APPLIED:
            continue
        if kind in _BEGINS or kind in _ENDS:
            since.pop(subject, None)
        if kind not in _ENDS:
            since.setdefault(subject, []).append(id_)
    return {id_ for ids in since.values() for id_ in ids}


def modification_event(row: StoredRow) -> Event | None:
    """Return the event that made the row, without what rows don't keep; None if this version doesn't know its kind."""
    kind = KINDS.get(row["kind"])
    if kind is None or not issubclass(kind, (TableModification, DatabaseModification)):
        return None
    detail: dict[str, Any] = json.loads(row["detail"] or "{}")
    place = None if row["catalog_type"] is None else {"type": row["catalog_type"], "location": row["catalog_location"]}
    context = CatalogContext.model_validate({"name": row["catalog"] or "", "class_name": "", "id": place})
    fields: dict[str, Any] = {
        **detail,
        **_envelope(UUID(bytes=row["producer"]), row["sequence"], row["time"]),
        "context": context,
        "effect": row["effect"],
        "cause": row["cause"],
    }
    if issubclass(kind, DatabaseModification):
        fields["identifier"] = {"catalog": row["catalog"], "database": row["database_name"]}
    else:
        fields |= {"identifier": _table_name(row), "dataset": _dataset(row), "generation": row["generation"]}
        fields |= {"on_branch": row["branch"], "schema_id": row["schema_id"], "produced": row["produced"]}
        fields["parent"] = row["parent_snapshot"]
    return _validate(kind, fields)


def lineage_event(rows: LineageRows) -> JobLineage:
    """Return the job lineage."""
    row = rows.lineage
    sides: dict[str, list[dict[str, Any]]] = {_SOURCE: [], "SINK": []}
    for table in rows.tables:
        place = {"dataset": _dataset(table), "table": _table_name(table)}
        place |= {name: table[name] for name in ("format", "branch", "opaque")}
        sides[table["side"]].append(
            {**json.loads(table["detail"] or "{}"), **_present(place), "dataset": place["dataset"]}
        )
    columns = [
        _present({**{name: column[name] for name in ("output", "input", "derivation", "expression")}, **_paths(column)})
        for column in rows.columns
    ]
    fields = {
        **_envelope(UUID(bytes=hash_key("store_lineage", (row["fingerprint"], row["variant"]))), 1, rows.time),
        "job": _job(row),
        "fingerprint": row["fingerprint"],
        "sql": row["query"],
        "inputs": sides[_SOURCE],
        "outputs": sides["SINK"],
        "columns": columns,
        "columns_omitted": bool(row["columns_omitted"]),
    }
    event = _validate(JobLineage, fields)
    assert isinstance(event, JobLineage)  # noqa: S101 - it was asked for
    return event


def commit_event(rows: CommitRows) -> Committed:
    """Return the commit."""
    row = rows.commit
    incarnation = UUID(bytes=row["incarnation"])
    is_stream = row["batch_id"] is not None
    places = {each["id"]: index for index, each in enumerate(rows.reads)}
    fields = {
        **_envelope(incarnation, row["barrier"], row["committed_at"] or row["last"]),
        "job": _job(row),
        "parent_job": _job(row, "parent_namespace", "parent_job"),
        "barrier": row["barrier"],
        "incarnation": incarnation if is_stream else None,
        "batch_id": row["batch_id"],
        "fingerprint": row["fingerprint"],
        "statement": row["statement"],
        "user": row["user_name"],
        "operation": row["operation"],
        "application": row["application"] or "",
        "run": None if row["run"] is None else UUID(bytes=row["run"]),
        "inputs": [_input(read) for read in rows.reads],
        "outputs": [_output(write, rows, places) for write in rows.writes],
        **_times(row, started="started_at", ended="ended_at"),
    }
    event = _validate(Committed, fields)
    assert isinstance(event, Committed)  # noqa: S101 - it was asked for
    return event


def _input(row: StoredRow) -> dict[str, Any]:
    since = _present({"snapshot": row["since_snapshot"], "version": row["since_version"]})
    numbers = {"snapshot": row["snapshot"], "version": row["version"], "rows": row["row_count"]}
    return _place(row) | _present(
        {**numbers, "bytes": row["byte_count"], "mode": row["mode"], "tag": row["tag"], "since": since or None}
    )


def _output(row: StoredRow, rows: CommitRows, places: Mapping[bytes, int]) -> dict[str, Any]:
    """`made_from` is all reads, those that edges name, or unknown."""
    how = {"ALL": list(range(len(places))), "SOME": _edges(row, rows, places)}.get(row["made_from"])
    numbers = {"snapshot": row["snapshot"], "version": row["version"], "parent": row["parent_snapshot"]}
    counts = {"rows": row["row_count"], "bytes": row["byte_count"], "schema_id": row["schema_id"]}
    counts |= {"files": row["file_count"]} | _times(row, snapshot_time="snapshot_time")
    kinds = {"commit_kind": row["commit_kind"], "replaced": row["replaced"], "made_from": how}
    return _place(row) | _present({**numbers, **counts, **kinds})


def _times(row: StoredRow, **columns: str) -> dict[str, Any]:
    """Return times that columns hold, by the field of the event."""
    return {field: None if row[name] is None else moment_of(row[name]) for field, name in columns.items()}


def _edges(row: StoredRow, rows: CommitRows, places: Mapping[bytes, int]) -> list[int]:
    return sorted(places[read] for read in rows.made_from.get(row["id"], ()) if read in places)


def _place(row: StoredRow) -> dict[str, Any]:
    candidates = json.loads(row["candidates"]) if row["candidates"] else ()
    known = {"table": _table_name(row), "generation": row["generation"], "branch": row["branch"]}
    known |= {"opaque": row["opaque"], "format": row["format"], "main": bool(row["main"])}
    return {"dataset": _dataset(row), "candidates": candidates, **_present(known)}


def _paths(row: StoredRow) -> dict[str, Any]:
    return {name: json.loads(row[name]) for name in ("source", "target") if row[name]}


def _envelope(producer: UUID, sequence: int, time: int) -> dict[str, Any]:
    return {"producer": producer, "sequence": sequence, "family_sequence": sequence, "time": moment_of(time)}


def _dataset(row: StoredRow) -> dict[str, str] | None:
    if row["dataset_namespace"] is None:
        return None
    return {"namespace": row["dataset_namespace"], "name": row["dataset_name"]}


def _table_name(row: StoredRow) -> dict[str, str] | None:
    if row["table_name"] is None:
        return None
    return {"catalog": row["catalog"] or "", "database": row["database_name"] or "", "table": row["table_name"]}


def _job(row: StoredRow, namespace: str = "job_namespace", name: str = "job") -> dict[str, str] | None:
    return None if row[name] is None else {"namespace": row[namespace], "name": row[name]}


def _present(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _validate(kind: type[Event], fields: Mapping[str, Any]) -> Event:
    try:
        return kind.model_validate(_present(fields))
    except ValueError as e:
        raise TerminalError(f"a row of the store can't be made a {kind.__name__} event: {e}") from e
