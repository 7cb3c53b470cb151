"""What a command of the second kind asks its catalog to change, as changes of events."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from headwater.events import (
    AddColumn,
    ChangeDefault,
    ChangeNullability,
    DropColumn,
    MoveColumn,
    OtherChange,
    Position,
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

_AFTER: Final = "AFTER "
COMMENT: Final = "comment"
LOCATION: Final = "location"

Told = Mapping[str, Any]


def changes_of(told: Iterable[Told], plan: Plan) -> Iterator[TableChange]:
    """From Spark's TableChanges, as the driver wrote them."""
    for each in told:
        read = _READERS.get(each.get("change", ""))
        yield OtherChange(what=each.get("change", "")) if read is None else read(each, plan)


def set_property(key: str, value: str) -> TableChange:
    """Comment and location have places of their own."""
    if key == COMMENT:
        return SetComment(comment=value)
    if key == LOCATION:
        return SetLocation(location=value)
    return SetProperty(key=key, value=value)


def remove_property(key: str) -> TableChange:
    return SetComment(comment=None) if key == COMMENT else RemoveProperty(key=key)


def position_of(told: str | None) -> Position | None:
    if told is None:
        return None
    return Position(after=told[len(_AFTER) :] if told.startswith(_AFTER) else None)


def _path(told: Told) -> FieldPath:
    return tuple(told["fieldNames"])


def type_of(told: Any, plan: Plan) -> str:
    """Structs are written as schemas, whatever they are the type of."""
    number: int = told["type"] if "type" in told else told["schema"]
    return plan.types[number]


def _add(told: Told, plan: Plan) -> TableChange:
    return AddColumn(
        path=_path(told),
        type=type_of(told["dataType"], plan),
        nullable=told["isNullable"],
        comment=told.get("comment"),
        default=told.get("defaultValue"),
        position=position_of(told.get("position")),
    )


def _retype(told: Told, plan: Plan) -> TableChange:
    return RetypeColumn(path=_path(told), type=type_of(told["newDataType"], plan))


def _move(told: Told, plan: Plan) -> TableChange:
    return MoveColumn(path=_path(told), position=position_of(told.get("position")) or Position())


def _clustering(told: Told, plan: Plan) -> TableChange:
    references: Sequence[Any] = told.get("clusteringColumns", ())
    return SetClustering(columns=tuple(tuple(each.get("parts") or each.get("column") or ()) for each in references))


_READERS: Final[Mapping[str, Callable[[Told, Plan], TableChange]]] = {
    "AddColumn": _add,
    "RenameColumn": lambda told, _: RenameColumn(path=_path(told), new_name=told["newName"]),
    "UpdateColumnType": _retype,
    "UpdateColumnNullability": lambda told, _: ChangeNullability(path=_path(told), nullable=told["nullable"]),
    "UpdateColumnComment": lambda told, _: RecommentColumn(path=_path(told), comment=told.get("newComment")),
    "UpdateColumnPosition": _move,
    "UpdateColumnDefaultValue": lambda told, _: ChangeDefault(
        path=_path(told), default=told.get("newDefaultValue") or None
    ),
    "DeleteColumn": lambda told, _: DropColumn(path=_path(told), if_exists=bool(told.get("ifExists"))),
    "SetProperty": lambda told, _: set_property(told["property"], told["value"]),
    "RemoveProperty": lambda told, _: remove_property(told["property"]),
    "ClusterBy": _clustering,
}
