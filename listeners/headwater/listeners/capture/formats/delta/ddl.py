"""What Delta's own DDL did to a catalog's tables: told from the versions it committed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from headwater.events import (
    AddConstraint,
    AlterTable,
    Cause,
    Constraint,
    ConstraintKind,
    CreateTable,
    DropConstraint,
    Effect,
    Event,
    Format,
    OtherChange,
    SetClustering,
    TableChange,
)
from headwater.events.tables import Table
from headwater.events.types import columns_from_schema_json
from headwater.listeners.capture.formats.delta.commits import Commit, commits_of, is_watched
from headwater.listeners.capture.formats.delta.evolution import altered, described, path_name
from headwater.listeners.capture.formats.delta.metadata import clustered_by
from headwater.listeners.capture.formats.delta.places import Place, dataset_at, life_of, place_of, relation_below
from headwater.listeners.capture.formats.relations import table_name
from headwater.listeners.capture.plan.tree import Node, Plan
from headwater.listeners.capture.scene import Scene
from headwater.listeners.capture.statements import Statement

_IGNORE: Final = "Ignore"


def altered_by(node: Node, statement: Statement, scene: Scene) -> Iterator[Event]:
    """An AlterTable for each version that the command made: DROP FEATURE makes several."""
    place = _table(node, statement.plan)
    if place is None:
        return
    commits = [commit for commit in commits_of(statement.facts) if commit.path == place.path]
    for commit in commits:
        told = altered(commit, place.table, None, scene, Cause.STATEMENT)
        yield told or _unseen(place, scene, commit, (OtherChange(what=commit.operation or node.name),))
    if not commits and statement.failure is None and not is_watched(statement.facts):
        yield _unseen(place, scene, None, _as_asked(node))


def created_by(node: Node, statement: Statement, scene: Scene) -> Iterator[Event]:
    """A clone or a table like another. Nothing was committed where there was one already."""
    told: Mapping[str, Any] = node.args["table"]
    location = told.get("storage", {}).get("location")
    commits = commits_of(statement.facts)
    if commits:
        yield _created(node, commits[-1], scene)
    elif not is_watched(statement.facts):
        name = table_name(told)
        columns = columns_from_schema_json(statement.plan.types[told["schema"]])
        maybe = node.args.get("mode") == _IGNORE
        if name is not None:
            yield CreateTable(
                context=scene.session_catalog().context,
                effect=Effect.UNKNOWN if maybe else Effect.APPLIED,
                identifier=name,
                dataset=dataset_at(location, scene),
                format=Format.DELTA,
                table=Table(columns=columns, location=location, provider="delta"),
                ignore_if_exists=maybe,
            )


def _created(node: Node, commit: Commit, scene: Scene) -> CreateTable:
    told: Mapping[str, Any] = node.args["table"]
    table = described(commit, commit.metadata or commit.before) or Table(location=commit.path, provider="delta")
    by_name = "/" not in told["name"]
    return CreateTable(
        context=scene.session_catalog().context,
        identifier=(table_name(told) if by_name else None) or path_name(commit.path),
        dataset=dataset_at(commit.path, scene),
        life=life_of(commit.life),
        format=Format.DELTA,
        produced=commit.version,
        parent=commit.parent,
        table=table.model_copy(update={"clustering": clustered_by(commit.parameters.get("clusterBy"))}),
        ignore_if_exists=node.args.get("mode") == _IGNORE,
        replaced=commit.read_version >= 0,
        replaced_life=None if commit.before is None else life_of(commit.before["id"]),
    )


def converted_by(node: Node, statement: Statement, scene: Scene) -> Iterator[Event]:
    """A table of a catalog changes its provider; a path is in no catalog."""
    name = table_name(_named(node.args["tableIdentifier"]))
    for commit in commits_of(statement.facts):
        if name is not None:
            yield AlterTable(
                context=scene.session_catalog().context,
                identifier=name,
                dataset=dataset_at(commit.path, scene),
                life=life_of(commit.life),
                format=Format.DELTA,
                produced=commit.version,
                parent=commit.parent,
                changes=(OtherChange(what="converted to Delta"),),
                new_table=described(commit, commit.metadata),
            )


def _named(identifier: Mapping[str, Any]) -> Mapping[str, Any] | None:
    return None if "/" in identifier["table"] else {**identifier, "name": identifier["table"]}


def _table(node: Node, plan: Plan) -> Place | None:
    relation = relation_below(
        plan, node.plan_of("table") if node.plan_of("table") is not None else node.plan_of("child")
    )
    return place_of(node if relation is None else relation, plan)


def _unseen(place: Place, scene: Scene, commit: Commit | None, changes: tuple[TableChange, ...]) -> AlterTable:
    """A change that the log's metadata doesn't show, or whose commit wasn't seen."""
    return AlterTable(
        context=scene.session_catalog().context,
        identifier=place.table or path_name(place.path),
        dataset=place.dataset(scene),
        life=place.life if commit is None else life_of(commit.life),
        format=Format.DELTA,
        produced=None if commit is None else commit.version,
        parent=None if commit is None else commit.parent,
        changes=changes,
    )


def _as_asked(node: Node) -> tuple[TableChange, ...]:
    read = _ASKED.get(node.name)
    return (OtherChange(what=node.name),) if read is None else (read(node.args),)


def _clustering(args: Mapping[str, Any]) -> TableChange:
    columns = (args.get("clusterBySpec") or {}).get("columnNames", ())
    return SetClustering(columns=tuple(tuple(each["parts"]) for each in columns))


def _check(args: Mapping[str, Any]) -> TableChange:
    check = Constraint(name=args["constraintName"], kind=ConstraintKind.CHECK, expression=args["expr"], enforced=True)
    return AddConstraint(constraint=check)


_ASKED: Final[Mapping[str, Callable[[Mapping[str, Any]], TableChange]]] = {
    "AlterTableAddConstraint": _check,
    "AlterTableDropConstraint": lambda args: DropConstraint(name=args["constraintName"]),
    "AlterTableClusterBy": _clustering,
}
"""What was asked for, where nothing else is known."""
