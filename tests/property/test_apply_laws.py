"""What holds for every table and every list of changes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headwater.events.apply import apply
from headwater.events.changes import (
    AddColumn,
    AddConstraint,
    ColumnPosition,
    DropColumn,
    DropConstraint,
    MoveColumn,
    RenameColumn,
    TableChange,
)
from headwater.events.tables import Constraint, ConstraintKind, Table
from headwater.events.types import columns_from_schema_json, parse_json, schema_json, to_json
from tests.kit.columns.table_changes import TYPES, Place, histories, places, tables

FRESH = "not there yet"


@given(tables())
def test_nothing_changes_nothing(table: Table) -> None:
    assert apply([], table) == table


@given(histories(), st.data())
def test_changes_can_be_applied_in_two_goes(history: tuple[Table, list[TableChange]], data: st.DataObject) -> None:
    table, changes = history
    cut = data.draw(st.integers(0, len(changes)))
    whole = apply(changes, table, case_sensitive=True)
    first = apply(changes[:cut], table, case_sensitive=True)
    assert apply(changes[cut:], first, case_sensitive=True) == whole


@given(histories())
def test_the_table_that_was_is_left_alone(history: tuple[Table, list[TableChange]]) -> None:
    table, changes = history
    before = table.model_dump_json()
    apply(changes, table, case_sensitive=True)
    assert table.model_dump_json() == before


@given(histories())
def test_what_comes_out_is_a_table_like_any_other(history: tuple[Table, list[TableChange]]) -> None:
    table, changes = history
    after = apply(changes, table, case_sensitive=True)
    assert Table.model_validate_json(after.model_dump_json()) == after
    assert [to_json(parse_json(column.type)) for column in after.columns] == [column.type for column in after.columns]
    assert columns_from_schema_json(schema_json(after.columns)) == after.columns


@given(histories())
def test_what_refers_to_columns_refers_to_columns_that_are_there(history: tuple[Table, list[TableChange]]) -> None:
    table, changes = history
    after = apply(changes, table, case_sensitive=True)
    there = {place.path for place in places(after)}
    constrained = [column for constraint in after.constraints for column in constraint.columns]
    watermarked = [watermark.column for watermark in after.watermarks]
    ordered = [column for field in after.ordering for column in field.by.columns]
    used = [*after.partition_keys, *after.primary_key, *after.clustering, *constrained, *watermarked, *ordered]
    assert set(used) <= there


def named_place(table: Table, data: st.DataObject) -> Place:
    return data.draw(st.sampled_from([place for place in places(table) if place.siblings]))


@given(tables(), st.data())
def test_a_column_added_and_dropped_was_never_there(table: Table, data: st.DataObject) -> None:
    place = named_place(table, data)
    position = data.draw(st.none() | st.builds(ColumnPosition, after=st.none() | st.sampled_from(place.siblings)))
    path = (*place.path[:-1], FRESH)
    add = AddColumn(path=path, type=to_json(data.draw(TYPES)), comment="c", default="1", position=position)
    added = apply([add], table, case_sensitive=True)
    assert added != table
    assert apply([DropColumn(path=path)], added, case_sensitive=True) == table


@given(tables(), st.data())
def test_a_column_renamed_there_and_back_is_the_same(table: Table, data: st.DataObject) -> None:
    place = named_place(table, data)
    there = RenameColumn(path=place.path, new_name=FRESH)
    back = RenameColumn(path=(*place.path[:-1], FRESH), new_name=place.path[-1])
    renamed = apply([there], table, case_sensitive=True)
    assert renamed != table
    assert apply([back], renamed, case_sensitive=True) == table


@given(tables(), st.data())
def test_a_column_moved_away_and_back_is_the_same(table: Table, data: st.DataObject) -> None:
    place = named_place(table, data)
    index = place.siblings.index(place.path[-1])
    away = MoveColumn(path=place.path, position=ColumnPosition())
    back = MoveColumn(path=place.path, position=ColumnPosition(after=place.siblings[index - 1] if index else None))
    assert apply([away, back], table, case_sensitive=True) == table


@given(tables(), st.data())
def test_a_constraint_added_and_dropped_was_never_there(table: Table, data: st.DataObject) -> None:
    columns = (named_place(table, data).path,)
    constraint = Constraint(name=FRESH, kind=ConstraintKind.CHECK, columns=columns, expression="true")
    added = apply([AddConstraint(constraint=constraint)], table, case_sensitive=True)
    assert added.constraints[-1] == constraint
    assert apply([DropConstraint(name=FRESH)], added, case_sensitive=True) == table
