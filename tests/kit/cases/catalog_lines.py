"""Catalog modifications as short lines, so that the truth of a case can be written by hand beside it; and what Spark
itself says of a table, before and after."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from headwater.events import (
    AlterDatabase,
    AlterTable,
    AlterView,
    CreateDatabase,
    CreateTable,
    CreateView,
    DropDatabase,
    DropTable,
    DropView,
    Event,
    Table,
    TableName,
    Truncate,
)
from headwater.events.catalog import CatalogModification, ModificationEffect
from headwater.events.changes import ColumnPosition
from headwater.events.redaction import Redactor
from headwater.events.tables import Column, Database, Transform, View
from headwater.events.types import parse_json, simple_string
from tests.kit.spark.driver import Driver

OWN: Final = "headwater-own"
REDACTED: Final = Redactor().value("password", "anything")
_QUIET: Final = frozenset({"write.parquet.compression-codec", "format", "format-version"})
"""Properties that Iceberg gives each table by itself."""


def lines(events: Iterable[Event]) -> list[str]:
    """One for each modification of a catalog, in order; a `?` in front where it isn't known whether it took effect."""
    return [_line(event) for event in events if isinstance(event, CatalogModification)]


def _line(event: CatalogModification) -> str:
    unknown = "? " if event.effect is ModificationEffect.UNKNOWN else ""
    return unknown + _LINES[type(event)](event)


def _created(event: CreateTable) -> str:
    flags = {
        "if not exists": event.ignore_if_exists,
        "as select": event.as_select,
        "replaced": event.replaced,
    }
    return f"+ {_name(event.identifier)} ({table(event.table)})" + _flags(flags)


def _flags(flags: Mapping[str, bool]) -> str:
    return "".join(f" {word}" for word, holds in flags.items() if holds)


def table(captured: Table) -> str:
    parts = [columns(captured.columns)]
    if captured.partitioning:
        parts.append("by " + ", ".join(map(_transform, captured.partitioning)))
    if captured.ordering:
        parts.append("sorted by " + ", ".join(_transform(each.by) for each in captured.ordering))
    parts.extend([captured.provider or "-", captured.table_kind.value])
    properties = {key: text for key, text in captured.properties.items() if key not in _QUIET}
    parts.extend([f"{key}={text}" for key, text in properties.items()])
    return "; ".join([*parts, *([f"'{captured.comment}'"] if captured.comment else [])])


def columns(captured: Iterable[Column]) -> str:
    return ", ".join(_column(column) for column in captured)


def _column(column: Column) -> str:
    text = f"{column.name} {simple_string(parse_json(column.type))}"
    text += "" if column.nullable else "!"
    text += f" ={column.default}" if column.default is not None else ""
    return text + (f" '{column.comment}'" if column.comment else "")


def _transform(transform: Transform) -> str:
    path = ", ".join(".".join(column) for column in transform.columns)
    if transform.is_identity:
        return path
    return f"{transform.name}({', '.join([*transform.arguments, path])})"


def _altered(event: AlterTable) -> str:
    return f"{_name(event.identifier)}: " + ", ".join(_change(change) for change in event.changes)


def _change(change: Any) -> str:
    return str(_CHANGES[change.change](change))


def _path(change: Any) -> str:
    return ".".join(change.path)


def _at(position: ColumnPosition | None) -> str:
    if position is None:
        return ""
    return f" after {position.after}" if position.after else " first"


def _added(change: Any) -> str:
    column = Column(
        name=_path(change), type=change.type, nullable=change.nullable, comment=change.comment, default=change.default
    )
    return f"add {_column(column)}{_at(change.position)}"


def _spec(values: Mapping[str, str]) -> str:
    return "/".join(f"{key}={text}" for key, text in values.items())


_CHANGES: Final[Mapping[str, Callable[[Any], str]]] = {
    "AddColumn": _added,
    "DropColumn": lambda c: f"drop {_path(c)}",
    "RenameColumn": lambda c: f"rename {_path(c)} to {c.new_name}",
    "RetypeColumn": lambda c: f"type {_path(c)} {simple_string(parse_json(c.type))}",
    "RecommentColumn": lambda c: f"comment {_path(c)} '{c.comment}'",
    "MoveColumn": lambda c: f"move {_path(c)}{_at(c.position)}",
    "ChangeNullability": lambda c: f"{'null' if c.nullable else 'not null'} {_path(c)}",
    "ChangeDefault": lambda c: f"default {_path(c)} {c.default}",
    "SetProperty": lambda c: f"set {c.key}={c.value}",
    "RemoveProperty": lambda c: f"unset {c.key}",
    "SetComment": lambda c: f"comment '{c.comment}'",
    "SetLocation": lambda c: f"at {c.location.rpartition('/')[2]}" + (" known" if c.dataset else ""),
    "RenameTable": lambda c: f"to {_name(c.table)}" + (" moved" if c.dataset else ""),
    "AddPartition": lambda c: (
        f"+ {_spec(c.partition)}" + (f" at {c.location.rpartition('/')[2]}" if c.location else "")
    ),
    "DropPartition": lambda c: f"- {_spec(c.partition)}",
    "RenamePartition": lambda c: f"{_spec(c.partition)} to {_spec(c.new_partition)}",
    "SetPartitionLocation": lambda c: f"{_spec(c.partition)} at {c.location.rpartition('/')[2]}",
    "OtherChange": lambda c: c.what,
}


def _dropped(event: DropTable) -> str:
    flags = {"if exists": event.ignore_if_not_exists, "purge": event.purge, "known": event.table is not None}
    return f"- {_name(event.identifier)}" + _flags(flags)


def _truncated(event: Truncate) -> str:
    return f"truncate {_name(event.identifier)}" + "".join(f" {_spec(each)}" for each in event.partitions)


def _view(captured: View) -> str:
    lineage = [
        f"{'.'.join(edge.target) if edge.target else '*'}<{captured.sources[edge.input].table}.{'.'.join(edge.source)}"
        for edge in captured.lineage
    ]
    parts = [columns(captured.columns), *lineage, *(f"{key}={text}" for key, text in captured.properties.items())]
    return "; ".join([*parts, *([f"'{captured.comment}'"] if captured.comment else [])])


def _view_created(event: CreateView) -> str:
    flags = {"if not exists": event.ignore_if_exists, "replaced": event.replaced}
    return f"+ view {_name(event.identifier)} ({_view(event.view)})" + _flags(flags)


def _view_altered(event: AlterView) -> str:
    target = f" to {_name(event.renamed_to)}" if event.renamed_to else ""
    old, new = ("?" if each is None else _view(each) for each in (event.view, event.new_view))
    return f"view {_name(event.identifier)}{target}: ({old}) -> ({new})"


def _view_dropped(event: DropView) -> str:
    flags = {"if exists": event.ignore_if_not_exists, "known": event.view is not None}
    return f"- view {_name(event.identifier)}" + _flags(flags)


def _database(captured: Database | None) -> str:
    if captured is None:
        return "?"
    parts = [f"{key}={text}" for key, text in captured.properties.items()]
    parts += [f"'{captured.comment}'"] if captured.comment else []
    return "; ".join([*parts, *([f"at {captured.location.rpartition('/')[2]}"] if captured.location else [])])


def _database_created(event: CreateDatabase) -> str:
    flags = {"if not exists": event.ignore_if_exists}
    return f"+ database {event.identifier.database} ({_database(event.database)})" + _flags(flags)


def _database_altered(event: AlterDatabase) -> str:
    old, new = _database(event.database), _database(event.new_database)
    return f"database {event.identifier.database}: ({old}) -> ({new})"


def _database_dropped(event: DropDatabase) -> str:
    flags = {"if exists": event.ignore_if_not_exists, "cascade": event.cascade, "known": event.database is not None}
    return f"- database {event.identifier.database}" + _flags(flags)


def _name(name: TableName) -> str:
    return name.table if name.catalog == "spark_catalog" else f"{name.catalog}.{name.table}"


_LINES: Final[Mapping[type, Callable[[Any], str]]] = {
    CreateTable: _created,
    AlterTable: _altered,
    DropTable: _dropped,
    Truncate: _truncated,
    CreateView: _view_created,
    AlterView: _view_altered,
    DropView: _view_dropped,
    CreateDatabase: _database_created,
    AlterDatabase: _database_altered,
    DropDatabase: _database_dropped,
}


@dataclass(frozen=True)
class Shown:
    """A table as Spark shows it to anybody who asks."""

    columns: tuple[tuple[str, str, str], ...]
    """Name, type, comment."""
    details: Mapping[str, str] = field(default_factory=dict)
    properties: Mapping[str, str] = field(default_factory=dict)


def shown(driver: Driver, name: str) -> Shown | None:
    """None where there is no such table."""
    if not driver.spark.catalog.tableExists(name):
        return None
    rows = [tuple(text or "" for text in row) for row in driver.rows(f"DESCRIBE TABLE EXTENDED {name}")]
    upper = list(_until_blank(rows))
    details = {key: text for key, text, _ in rows[len(upper) :]}
    pairs = {row[0]: row[1] for row in driver.rows(f"SHOW TBLPROPERTIES {name}")}
    return Shown(tuple((name, kind, text) for name, kind, text in upper), details, pairs)


def _until_blank(rows: Iterable[tuple[str, ...]]) -> Iterator[tuple[str, ...]]:
    for row in rows:
        if not row[0] or row[0].startswith("#"):
            return
        yield row


def agrees(captured: Table, with_: Shown) -> None:
    """What was reported of a table is what Spark shows of it. (Of char and varchar it shows string, now and then.)"""
    ours = [(c.name, simple_string(parse_json(c.type)), c.comment or "") for c in captured.columns]
    theirs = [
        (name, mine[1] if kind == "string" and mine[1].startswith(("char", "varchar")) else kind, text)
        for (name, kind, text), mine in zip(with_.columns, ours, strict=True)
    ]
    assert ours == theirs
    kept = {k: text for k, text in captured.properties.items() if not k.startswith("option.") and text != REDACTED}
    missing = {key: text for key, text in kept.items() if with_.properties.get(key) != text}
    assert not missing, f"told but not there: {missing}"
    if "Location" in with_.details and captured.location is not None:
        assert _plain(captured.location) == _plain(with_.details["Location"])
    if "Comment" in with_.details:
        assert captured.comment == with_.details["Comment"]


def _plain(location: str) -> str:
    return "/" + location.removeprefix("file:").lstrip("/")


def with_nobody_looking(driver: Driver, statement: str) -> None:
    """As somebody else's application would do it: what carries this tag isn't the job's."""
    context = driver.spark.sparkContext
    context.addJobTag(OWN)
    try:
        driver.run(statement)
    finally:
        context.removeJobTag(OWN)
