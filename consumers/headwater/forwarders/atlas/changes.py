"""Collects what is to change in Atlas because of one event."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from headwater.events import Event
from headwater.events.scalars import FieldPath, Format
from headwater.events.tables import Column
from headwater.events.types import TypeTextError, parse_json, simple_string
from headwater.forwarders.atlas.entities import (
    EVENT_TIME,
    AtlasRef,
    Change,
    Put,
    References,
    Remove,
    WriteRule,
    millis_since_epoch,
)
from headwater.forwarders.atlas.names import HDFS_PATH, HIVE_TABLE, KAFKA_TOPIC, RDBMS_TABLE, AtlasDataset, AtlasNamer


class EventChanges:
    """The changes of one event, in their order. All carry the event's time, so that the same event makes the same."""

    def __init__(self, event: Event, namer: AtlasNamer) -> None:
        self.event: Final = event
        self.namer: Final = namer
        self.millis: Final = millis_since_epoch(event.time)
        self._removals: list[Remove] = []
        self._puts: dict[AtlasRef, Put] = {}

    def put(
        self,
        ref: AtlasRef,
        name: str,
        attributes: Mapping[str, Any] | None = None,
        references: Mapping[str, References | None] | None = None,
        *,
        moved_from: AtlasRef | None = None,
        rule: WriteRule = WriteRule.SET,
    ) -> None:
        """Write an entity of ours, unless it was written from a newer event already."""
        told = {**(attributes or {}), EVENT_TIME: self.millis}
        found = {key: value for key, value in (references or {}).items() if value is not None}
        self._puts[ref] = Put(ref, name, self.millis, told, found, rule, ref, moved_from)

    def put_part(
        self,
        ref: AtlasRef,
        name: str,
        attributes: Mapping[str, Any],
        references: Mapping[str, References],
        *,
        guard: AtlasRef | None,
        rule: WriteRule,
        moved_from: AtlasRef | None = None,
    ) -> None:
        """Write an entity whose time is that of another: `guard`."""
        if ref not in self._puts:
            self._puts[ref] = Put(ref, name, self.millis, attributes, references, rule, guard, moved_from)

    def put_absent(
        self,
        ref: AtlasRef,
        name: str,
        attributes: Mapping[str, Any] | None = None,
        references: Mapping[str, References] | None = None,
    ) -> None:
        """Write an entity only if there is none: what is there is from whoever knows it better."""
        if ref not in self._puts:
            self._puts[ref] = Put(ref, name, self.millis, attributes or {}, references or {}, WriteRule.ABSENT)

    def remove(self, ref: AtlasRef) -> None:
        self._removals.append(Remove(ref, self.millis))

    def mention(self, dataset: AtlasDataset, columns: Sequence[Column] = ()) -> None:
        """Write a dataset that a job has to do with, where Atlas has none of it."""
        if dataset.is_own:
            self._mention_own(dataset)
        elif dataset.type_name == HIVE_TABLE:
            self._mention_hive(dataset)
        elif dataset.type_name == RDBMS_TABLE:
            self._mention_rdbms(dataset)
        elif dataset.type_name == KAFKA_TOPIC:
            self.put_absent(dataset.ref, dataset.name, {"topic": dataset.name, "uri": dataset.name})
        elif dataset.type_name == HDFS_PATH:
            self.put_absent(dataset.ref, dataset.name, {"path": dataset.base})
        for column in columns:
            self._mention_column(dataset, column)

    def put_columns(
        self, dataset: AtlasDataset, columns: Sequence[Column], previous: Mapping[str, AtlasRef] | None = None
    ) -> tuple[AtlasRef, ...]:
        """Write the columns of a table of ours, and return them. `previous` says what a column was called before."""
        refs: list[AtlasRef] = []
        for position, column in enumerate(columns):
            ref = dataset.column((column.name,))
            if ref is None:
                continue
            refs.append(ref)
            attributes = {**column_attributes(column), "position": position}
            before = (previous or {}).get(column.name)
            references = {"dataset": dataset.ref}
            self.put_part(
                ref,
                column.name,
                attributes,
                references,
                guard=dataset.ref,
                rule=WriteRule.SET,
                moved_from=before if before != ref else None,
            )
        return tuple(dict.fromkeys(refs))

    def put_database_of(self, dataset: AtlasDataset) -> AtlasRef | None:
        """Write the database of a table of ours where there is none, and return it."""
        database = self.namer.database_of(dataset)
        if database is None:
            return None
        ref = self.namer.database(database)
        self.put_absent(ref, database.database, {"catalog": database.catalog})
        return ref

    def __iter__(self) -> Iterator[Change]:
        yield from self._puts.values()
        yield from self._removals

    def _mention_own(self, dataset: AtlasDataset) -> None:
        database = self.put_database_of(dataset)
        attributes = place_attributes(dataset)
        self.put_absent(dataset.ref, dataset.name, attributes, {} if database is None else {"database": database})

    def _mention_hive(self, dataset: AtlasDataset) -> None:
        database = dataset.base.partition(".")[0]
        ref = AtlasRef("hive_db", f"{database}@{dataset.namespace}")
        self.put_absent(ref, database, {"clusterName": dataset.namespace})
        self.put_absent(dataset.ref, dataset.name, references={"db": ref})

    def _mention_rdbms(self, dataset: AtlasDataset) -> None:
        if dataset.dataset is None:
            return
        place, system = dataset.dataset.namespace, dataset.dataset.namespace.partition(":")[0]
        instance = AtlasRef("rdbms_instance", f"{place}@{dataset.namespace}")
        name = dataset.dataset.name.partition(".")[0]
        database = AtlasRef("rdbms_db", f"{place}/{name}@{dataset.namespace}")
        self.put_absent(instance, place, {"rdbms_type": system})
        self.put_absent(database, name, references={"instance": instance})
        self.put_absent(dataset.ref, dataset.name, references={"db": database})

    def _mention_column(self, dataset: AtlasDataset, column: Column) -> None:
        ref = dataset.column((column.name,))
        if ref is None:
            return
        rule = WriteRule.ABSENT
        if dataset.is_own:
            told = {"dataset": dataset.ref}
            self.put_part(ref, column.name, column_attributes(column), told, guard=dataset.ref, rule=rule)
        else:
            word = "type" if dataset.type_name == HIVE_TABLE else "data_type"
            told = {"table": dataset.ref}
            self.put_part(ref, column.name, {word: column_type(column)}, told, guard=None, rule=rule)


def place_attributes(dataset: AtlasDataset) -> dict[str, Any]:
    """Return what is known of a dataset of ours wherever its name stands. What isn't known isn't guessed."""
    kind = "FILES" if dataset.table is None else "VIEW" if dataset.format is Format.VIEW else "TABLE"
    is_known = dataset.table is None or dataset.format is not Format.UNKNOWN
    return {
        "kind": kind if is_known else None,
        "format": dataset.format.value if dataset.format is not Format.UNKNOWN else None,
        "catalog": dataset.table.catalog if dataset.table else None,
        "location": None if dataset.dataset is None else str(dataset.dataset),
    }


def column_attributes(column: Column) -> dict[str, Any]:
    return {
        "type": column_type(column),
        "nullable": column.nullable,
        "description": column.comment,
        "defaultValue": column.default,
        "generatedBy": column.generated,
    }


def column_type(column: Column) -> str:
    """Return the type as Spark's SQL writes it."""
    try:
        return simple_string(parse_json(column.type))
    except TypeTextError:
        return column.type


def column_text(path: FieldPath) -> str:
    return ".".join(path)
