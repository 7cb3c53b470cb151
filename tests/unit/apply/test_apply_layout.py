"""Changes of a table as a whole: properties, location, names, partitions, ordering, keys, constraints."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from headwater.events.apply import HANDLED, apply
from headwater.events.base import StringMap
from headwater.events.changes import (
    AddConstraint,
    AddPartition,
    AddPartitionField,
    DropConstraint,
    DropPartition,
    DropPartitionField,
    RemoveProperty,
    RenamePartition,
    RenameTable,
    ReplacePartitionField,
    SetClustering,
    SetComment,
    SetLocation,
    SetOrdering,
    SetPartitionLocation,
    SetPrimaryKey,
    SetProperty,
    TableChange,
)
from headwater.events.names import DatasetId, TableName
from headwater.events.tables import Column, Constraint, ConstraintKind, SortField, Table, TableKind, Transform

COLUMNS = (Column(name="id", type='"long"'), Column(name="Day", type='"date"'))
BEFORE = Table(
    columns=COLUMNS,
    properties=StringMap({"k": "v"}),
    comment="c",
    location="file:/t",
    provider="iceberg",
    owner="o",
    table_kind=TableKind.MANAGED,
)
DAYS = Transform(name="days", columns=(("Day",),))
BUCKET = Transform(name="bucket", columns=(("id",),), arguments=("16",))
ID = Transform(columns=(("id",),))
PARTITION = StringMap({"day": "2026-01-01"})
KEY = Constraint(name="pk", kind=ConstraintKind.PRIMARY_KEY, columns=(("id",),), enforced=False)
CHECK = Constraint(name="positive", kind=ConstraintKind.CHECK, expression="id > 0")

CASES: list[tuple[list[TableChange], dict[str, Any]]] = [
    ([SetProperty(key="k", value="w"), SetProperty(key="l", value="")], {"properties": StringMap({"k": "w", "l": ""})}),
    ([RemoveProperty(key="k"), RemoveProperty(key="nothing")], {"properties": StringMap()}),
    ([SetProperty(key="comment", value="new")], {"comment": "new"}),
    ([SetProperty(key="location", value="s3://b/t")], {"location": "s3://b/t"}),
    ([SetProperty(key="provider", value="delta")], {"provider": "delta"}),
    ([SetProperty(key="owner", value="you")], {"owner": "you"}),
    ([SetProperty(key="Comment", value="a property")], {"properties": StringMap({"k": "v", "Comment": "a property"})}),
    ([RemoveProperty(key="comment"), RemoveProperty(key="owner")], {"comment": None, "owner": None}),
    ([RemoveProperty(key="location"), RemoveProperty(key="provider")], {"location": None, "provider": None}),
    ([SetComment(comment="new")], {"comment": "new"}),
    ([SetComment()], {"comment": None}),
    ([SetLocation(location="s3://b/t")], {"location": "s3://b/t"}),
    ([RenameTable(table=TableName(catalog="c", database="d", table="t"))], {}),
    (
        [
            RenameTable(
                table=TableName(catalog="c", database="d", table="t"), dataset=DatasetId(namespace="s3://b", name="t")
            )
        ],
        {},
    ),
    ([AddPartition(partition=PARTITION, location="file:/p"), DropPartition(partition=PARTITION)], {}),
    ([RenamePartition(partition=PARTITION, new_partition=PARTITION)], {}),
    ([SetPartitionLocation(partition=PARTITION, location="file:/q")], {}),
    (
        [AddPartitionField(transform=Transform(name="days", columns=(("day",),))), AddPartitionField(transform=BUCKET)],
        {"partitioning": (DAYS, BUCKET)},
    ),
    (
        [
            AddPartitionField(transform=DAYS),
            AddPartitionField(transform=BUCKET),
            DropPartitionField(transform=Transform(name="DAYS", columns=(("DAY",),))),
        ],
        {"partitioning": (BUCKET,)},
    ),
    (
        [
            AddPartitionField(transform=DAYS),
            AddPartitionField(transform=BUCKET.model_copy(update={"field_name": "shard"})),
            DropPartitionField(transform=Transform(field_name="shard")),
        ],
        {"partitioning": (DAYS,)},
    ),
    (
        [
            AddPartitionField(transform=ID),
            AddPartitionField(transform=DAYS),
            ReplacePartitionField(transform=ID, new_transform=BUCKET),
        ],
        {"partitioning": (DAYS, BUCKET)},
    ),
    (
        [SetOrdering(ordering=(SortField(by=Transform(columns=(("DAY",),)), descending=True, nulls_first=False),))],
        {"ordering": (SortField(by=Transform(columns=(("Day",),)), descending=True, nulls_first=False),)},
    ),
    ([SetOrdering(ordering=(SortField(by=DAYS),)), SetOrdering()], {}),
    ([SetClustering(columns=(("ID",), ("day",)))], {"clustering": (("id",), ("Day",))}),
    ([SetClustering(columns=(("id",),)), SetClustering()], {}),
    ([SetPrimaryKey(columns=(("ID",),))], {"primary_key": (("id",),)}),
    ([SetPrimaryKey(columns=(("id",),)), SetPrimaryKey()], {}),
    ([AddConstraint(constraint=CHECK)], {"constraints": (CHECK,)}),
    ([AddConstraint(constraint=KEY)], {"constraints": (KEY,), "primary_key": (("id",),)}),
    (
        [SetPrimaryKey(columns=(("id",),)), AddConstraint(constraint=KEY), DropConstraint(name="PK")],
        {},
    ),
    (
        [AddConstraint(constraint=KEY), SetPrimaryKey(columns=(("Day",),)), DropConstraint(name="pk")],
        {"primary_key": (("Day",),)},
    ),
    (
        [AddConstraint(constraint=CHECK), AddConstraint(constraint=KEY), DropConstraint(name="positive")],
        {"constraints": (KEY,), "primary_key": (("id",),)},
    ),
]


@pytest.mark.parametrize(
    ("changes", "expected"), CASES, ids=["+".join(change.change for change in changes) for changes, _ in CASES]
)
def test_a_table_is_changed(changes: list[TableChange], expected: dict[str, Any]) -> None:
    assert apply(changes, BEFORE) == BEFORE.model_copy(update=expected)


def test_every_kind_of_change_is_known() -> None:
    union = get_args(TableChange)[0]
    assert set(get_args(union)) == HANDLED
