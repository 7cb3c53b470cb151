"""What a v2 command asks its catalog to change, as changes of events."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from headwater.events.changes import (
    AddColumn,
    ChangeDefault,
    ChangeNullability,
    ColumnPosition,
    DropColumn,
    MoveColumn,
    OtherChange,
    RecommentColumn,
    RemoveProperty,
    RenameColumn,
    RetypeColumn,
    SetClustering,
    SetComment,
    SetLocation,
    SetProperty,
    TableChange,
)
from headwater.events.scalars import FieldPath
from headwater.listeners.capture.plan.tree import Plan

_AFTER_PREFIX: Final = "AFTER "
COMMENT: Final = "comment"
LOCATION: Final = "location"

ChangeFields = Mapping[str, Any]


def parse_changes(fields: Iterable[ChangeFields], plan: Plan) -> Iterator[TableChange]:
    """From Spark's TableChanges, as the driver wrote them."""
    for change in fields:
        read = _CHANGE_READERS.get(change.get("change", ""))
        yield OtherChange(what=change.get("change", "")) if read is None else read(change, plan)


def set_property(key: str, value: str) -> TableChange:
    """Comment and location have places of their own."""
    if key == COMMENT:
        return SetComment(comment=value)
    if key == LOCATION:
        return SetLocation(location=value)
    return SetProperty(key=key, value=value)


def remove_property(key: str) -> TableChange:
    return SetComment(comment=None) if key == COMMENT else RemoveProperty(key=key)


def parse_position(fields: str | None) -> ColumnPosition | None:
    if fields is None:
        return None
    return ColumnPosition(after=fields[len(_AFTER_PREFIX) :] if fields.startswith(_AFTER_PREFIX) else None)


def _field_path(fields: ChangeFields) -> FieldPath:
    return tuple(fields["fieldNames"])


def type_json_of(fields: Any, plan: Plan) -> str:
    """Structs are written as schemas, whatever they are the type of."""
    number: int = fields["type"] if "type" in fields else fields["schema"]
    return plan.types[number]


def _add_column(fields: ChangeFields, plan: Plan) -> TableChange:
    return AddColumn(
        path=_field_path(fields),
        type=type_json_of(fields["dataType"], plan),
        nullable=fields["isNullable"],
        comment=fields.get("comment"),
        default=fields.get("defaultValue"),
        position=parse_position(fields.get("position")),
    )


def _change_type(fields: ChangeFields, plan: Plan) -> TableChange:
    return RetypeColumn(path=_field_path(fields), type=type_json_of(fields["newDataType"], plan))


def _move_column(fields: ChangeFields, plan: Plan) -> TableChange:
    return MoveColumn(path=_field_path(fields), position=parse_position(fields.get("position")) or ColumnPosition())


def _clustering(fields: ChangeFields, plan: Plan) -> TableChange:
    references: Sequence[Any] = fields.get("clusteringColumns", ())
    return SetClustering(
        columns=tuple(tuple(reference.get("parts") or reference.get("column") or ()) for reference in references)
    )


_CHANGE_READERS: Final[Mapping[str, Callable[[ChangeFields, Plan], TableChange]]] = {
    "AddColumn": _add_column,
    "RenameColumn": lambda fields, _: RenameColumn(path=_field_path(fields), new_name=fields["newName"]),
    "UpdateColumnType": _change_type,
    "UpdateColumnNullability": lambda fields, _: ChangeNullability(
        path=_field_path(fields), nullable=fields["nullable"]
    ),
    "UpdateColumnComment": lambda fields, _: RecommentColumn(
        path=_field_path(fields), comment=fields.get("newComment")
    ),
    "UpdateColumnPosition": _move_column,
    "UpdateColumnDefaultValue": lambda fields, _: ChangeDefault(
        path=_field_path(fields), default=fields.get("newDefaultValue") or None
    ),
    "DeleteColumn": lambda fields, _: DropColumn(path=_field_path(fields), if_exists=bool(fields.get("ifExists"))),
    "SetProperty": lambda fields, _: set_property(fields["property"], fields["value"]),
    "RemoveProperty": lambda fields, _: remove_property(fields["property"]),
    "ClusterBy": _clustering,
}
