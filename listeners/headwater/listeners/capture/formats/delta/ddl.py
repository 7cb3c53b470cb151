"""What Delta's own DDL did to a catalog's tables: read from the versions it committed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from headwater.events import AlterTable, CreateTable, Event, Format
from headwater.events.catalog import ModificationCause, ModificationEffect
from headwater.events.changes import AddConstraint, DropConstraint, OtherChange, SetClustering, TableChange
from headwater.events.tables import Constraint, ConstraintKind, Table
from headwater.events.types import columns_from_schema_json
from headwater.listeners.capture.context import CaptureContext
from headwater.listeners.capture.formats.delta.commits import DeltaCommit, commits_of, is_watched
from headwater.listeners.capture.formats.delta.metadata import parse_clustering
from headwater.listeners.capture.formats.delta.schema_changes import alter_event, describe_table, name_of_path
from headwater.listeners.capture.formats.delta.table_refs import (
    DeltaTableRef,
    dataset_at,
    find_table_ref,
    generation_of,
    relation_below,
)
from headwater.listeners.capture.formats.relations import table_name
from headwater.listeners.capture.plan.tree import Plan, PlanNode
from headwater.listeners.capture.statements import Statement

_IGNORE: Final = "Ignore"


def alter_events(node: PlanNode, statement: Statement, context: CaptureContext) -> Iterator[Event]:
    """An AlterTable for each version that the command made: DROP FEATURE makes several."""
    ref = _table(node, statement.plan)
    if ref is None:
        return
    commits = [commit for commit in commits_of(statement.facts) if commit.path == ref.path]
    for commit in commits:
        event = alter_event(commit, ref.table, None, context, ModificationCause.STATEMENT)
        yield event or _unseen_change(ref, context, commit, (OtherChange(what=commit.operation or node.name),))
    if not commits and statement.failure is None and not is_watched(statement.facts):
        yield _unseen_change(ref, context, None, _requested_changes(node))


def create_events(node: PlanNode, statement: Statement, context: CaptureContext) -> Iterator[Event]:
    """A clone or a table like another. Nothing was committed where there was one already."""
    fields: Mapping[str, Any] = node.args["table"]
    location = fields.get("storage", {}).get("location")
    commits = commits_of(statement.facts)
    if commits:
        yield _creation_event(node, commits[-1], context)
    elif not is_watched(statement.facts):
        name = table_name(fields)
        columns = columns_from_schema_json(statement.plan.types[fields["schema"]])
        maybe = node.args.get("mode") == _IGNORE
        if name is not None:
            yield CreateTable(
                context=context.session_catalog().context,
                effect=ModificationEffect.UNKNOWN if maybe else ModificationEffect.APPLIED,
                identifier=name,
                dataset=dataset_at(location, context),
                format=Format.DELTA,
                table=Table(columns=columns, location=location, provider="delta"),
                ignore_if_exists=maybe,
            )


def _creation_event(node: PlanNode, commit: DeltaCommit, context: CaptureContext) -> CreateTable:
    fields: Mapping[str, Any] = node.args["table"]
    table = describe_table(commit, commit.metadata or commit.before) or Table(location=commit.path, provider="delta")
    by_name = "/" not in fields["name"]
    return CreateTable(
        context=context.session_catalog().context,
        identifier=(table_name(fields) if by_name else None) or name_of_path(commit.path),
        dataset=dataset_at(commit.path, context),
        generation=generation_of(commit.generation),
        format=Format.DELTA,
        produced=commit.version,
        parent=commit.parent,
        table=table.model_copy(update={"clustering": parse_clustering(commit.parameters.get("clusterBy"))}),
        ignore_if_exists=node.args.get("mode") == _IGNORE,
        replaced=commit.read_version >= 0,
        replaced_generation=None if commit.before is None else generation_of(commit.before["id"]),
    )


def convert_events(node: PlanNode, statement: Statement, context: CaptureContext) -> Iterator[Event]:
    """A table of a catalog changes its provider; a path is in no catalog."""
    name = table_name(_name_of(node.args["tableIdentifier"]))
    for commit in commits_of(statement.facts):
        if name is not None:
            yield AlterTable(
                context=context.session_catalog().context,
                identifier=name,
                dataset=dataset_at(commit.path, context),
                generation=generation_of(commit.generation),
                format=Format.DELTA,
                produced=commit.version,
                parent=commit.parent,
                changes=(OtherChange(what="converted to Delta"),),
                new_table=describe_table(commit, commit.metadata),
            )


def _name_of(identifier: Mapping[str, Any]) -> Mapping[str, Any] | None:
    return None if "/" in identifier["table"] else {**identifier, "name": identifier["table"]}


def _table(node: PlanNode, plan: Plan) -> DeltaTableRef | None:
    relation = relation_below(
        plan, node.plan_of("table") if node.plan_of("table") is not None else node.plan_of("child")
    )
    return find_table_ref(node if relation is None else relation, plan)


def _unseen_change(
    ref: DeltaTableRef, context: CaptureContext, commit: DeltaCommit | None, changes: tuple[TableChange, ...]
) -> AlterTable:
    """A change that the log's metadata doesn't show, or whose commit wasn't seen."""
    return AlterTable(
        context=context.session_catalog().context,
        identifier=ref.table or name_of_path(ref.path),
        dataset=ref.dataset(context),
        generation=ref.generation if commit is None else generation_of(commit.generation),
        format=Format.DELTA,
        produced=None if commit is None else commit.version,
        parent=None if commit is None else commit.parent,
        changes=changes,
    )


def _requested_changes(node: PlanNode) -> tuple[TableChange, ...]:
    read = _REQUESTED.get(node.name)
    return (OtherChange(what=node.name),) if read is None else (read(node.args),)


def _clustering(args: Mapping[str, Any]) -> TableChange:
    columns = (args.get("clusterBySpec") or {}).get("columnNames", ())
    return SetClustering(columns=tuple(tuple(column["parts"]) for column in columns))


def _check(args: Mapping[str, Any]) -> TableChange:
    check = Constraint(name=args["constraintName"], kind=ConstraintKind.CHECK, expression=args["expr"], enforced=True)
    return AddConstraint(constraint=check)


_REQUESTED: Final[Mapping[str, Callable[[Mapping[str, Any]], TableChange]]] = {
    "AlterTableAddConstraint": _check,
    "AlterTableDropConstraint": lambda args: DropConstraint(name=args["constraintName"]),
    "AlterTableClusterBy": _clustering,
}
"""What was asked for, where nothing else is known."""
