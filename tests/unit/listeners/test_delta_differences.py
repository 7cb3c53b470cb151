"""What changed between two of Delta's metaData actions: each list of changes leads from the one to the other."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.events.apply import apply
from headwater.events.changes import (
    AddColumn,
    AddConstraint,
    AddPartitionField,
    ChangeDefault,
    ChangeNullability,
    ColumnPosition,
    DropColumn,
    DropConstraint,
    DropPartitionField,
    MoveColumn,
    OtherChange,
    RecommentColumn,
    RemoveProperty,
    RenameColumn,
    RetypeColumn,
    SetComment,
    SetProperty,
)
from headwater.events.tables import Constraint, ConstraintKind, Transform
from headwater.listeners.capture.formats.delta.metadata import table_of
from headwater.listeners.capture.formats.delta.schema_changes import metadata_changes

INT, TEXT, LONG = '"integer"', '"string"', '"long"'


def column(name: str, type_: Any = "integer", nullable: bool = True, **metadata: Any) -> dict[str, Any]:
    return {"name": name, "type": type_, "nullable": nullable, "metadata": metadata}


def mapped(name: str, physical: str, type_: Any = "integer") -> dict[str, Any]:
    mapping: dict[str, Any] = {"delta.columnMapping.id": 1, "delta.columnMapping.physicalName": physical}
    return column(name, type_, **mapping)


def struct(*fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "struct", "fields": list(fields)}


def array(element: Any) -> dict[str, Any]:
    return {"type": "array", "elementType": element, "containsNull": True}


def metadata(*fields: dict[str, Any], **rest: Any) -> dict[str, Any]:
    return {"id": "x", "schema": json.dumps(struct(*fields)), "partitions": [], "configuration": {}, **rest}


A, B = column("a"), column("b")
COUNTED = {**A, "metadata": {"delta.identity.highWaterMark": 1}}
CHECK = Constraint(name="c", kind=ConstraintKind.CHECK, expression="a > 0", enforced=True)

COLUMNS: list[tuple[str, list[Any], list[Any], list[Any] | None]] = [
    ("nothing", [A, B], [A, B], []),
    ("added", [A], [A, B], [AddColumn(path=("b",), type=INT)]),
    ("added first", [A], [B, A], [AddColumn(path=("b",), type=INT, position=ColumnPosition())]),
    (
        "added behind",
        [A, B],
        [A, column("c"), B],
        [AddColumn(path=("c",), type=INT, position=ColumnPosition(after="a"))],
    ),
    ("dropped", [A, B], [A], [DropColumn(path=("b",))]),
    ("moved", [A, B], [B, A], [MoveColumn(path=("b",), position=ColumnPosition())]),
    ("widened", [A], [column("a", "long")], [RetypeColumn(path=("a",), type=LONG)]),
    ("commented", [A], [column("a", comment="new")], [RecommentColumn(path=("a",), comment="new")]),
    ("nullable", [column("a", nullable=False)], [A], [ChangeNullability(path=("a",), nullable=True)]),
    ("default", [A], [column("a", CURRENT_DEFAULT="1")], [ChangeDefault(path=("a",), default="1")]),
    ("renamed", [mapped("a", "p")], [mapped("b", "p")], [RenameColumn(path=("a",), new_name="b")]),
    ("renamed, not dropped and made", [mapped("a", "p")], [mapped("a", "q")], []),
    (
        "in a struct",
        [column("s", struct(A))],
        [column("s", struct(A, B))],
        [AddColumn(path=("s", "b"), type=INT)],
    ),
    (
        "in an array of structs",
        [column("s", array(struct(A, B)))],
        [column("s", array(struct(A)))],
        [DropColumn(path=("s", "element", "b"))],
    ),
    (
        "an element",
        [column("s", array("integer"))],
        [column("s", array("long"))],
        [RetypeColumn(path=("s", "element"), type=LONG)],
    ),
    ("another kind", [A], [column("a", struct(B))], None),
    ("what identity columns count", [COUNTED], [A], []),
    ("column mapping switched on", [A], [mapped("a", "p")], []),
]


@pytest.mark.parametrize(
    ("before", "after", "changes"), [each[1:] for each in COLUMNS], ids=[each[0] for each in COLUMNS]
)
def test_columns(before: list[Any], after: list[Any], changes: list[Any] | None) -> None:
    differences = metadata_changes(metadata(*before), metadata(*after))

    if changes is not None:
        assert list(differences) == changes
    assert leads(metadata(*before), differences, metadata(*after))


def leads(before: dict[str, Any], changes: Any, after: dict[str, Any]) -> bool:
    found, wanted = apply(changes, table_of(before, "/t"), case_sensitive=True), table_of(after, "/t")
    return [(c.name, c.type, c.nullable, c.comment) for c in found.columns] == [
        (c.name, c.type, c.nullable, c.comment) for c in wanted.columns
    ]


def test_the_rest() -> None:
    before = metadata(A, B, partitions=["a"], configuration={"x": "1", "gone": "1", "delta.constraints.c": "a > 0"})
    after = metadata(A, B, partitions=["b"], configuration={"x": "2"}, description="new")

    expected = [
        DropPartitionField(transform=Transform(columns=(("a",),))),
        AddPartitionField(transform=Transform(columns=(("b",),))),
        SetProperty(key="x", value="2"),
        RemoveProperty(key="gone"),
        DropConstraint(name="c"),
        SetComment(comment="new"),
    ]
    found = metadata_changes(before, after)
    assert len(found) == len(expected)
    assert all(each in found for each in expected)
    assert AddConstraint(constraint=CHECK) in metadata_changes(after, before)


_NAMES = st.lists(st.sampled_from("abcdefg"), unique=True, min_size=1, max_size=6)
_TYPES = st.sampled_from(["integer", "string", array("integer")])


@given(_NAMES, _NAMES, st.data())
def test_any_two_schemas(old: list[str], new: list[str], data: st.DataObject) -> None:
    before = metadata(*[column(name, data.draw(_TYPES)) for name in old])
    after = metadata(*[column(name, data.draw(_TYPES)) for name in new])

    differences = metadata_changes(before, after)

    assert not any(isinstance(change, OtherChange) for change in differences)
    assert leads(before, differences, after)


@given(_NAMES, _NAMES)
def test_any_two_schemas_with_physical_names(old: list[str], new: list[str]) -> None:
    """Renames may trade names; where a list of changes can't say that, it says that the schema changed."""
    before = metadata(*[mapped(name, str(place)) for place, name in enumerate(old)])
    after = metadata(*[mapped(name, str(place)) for place, name in enumerate(new)])

    differences = metadata_changes(before, after)

    assert differences == (OtherChange(what="the schema"),) or leads(before, differences, after)
