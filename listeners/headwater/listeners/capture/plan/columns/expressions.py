"""What an expression is made from, in the scope of the operator it stands in. Nothing here recurses."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final, NamedTuple

from headwater.listeners.capture.plan.columns.origins import NO_MEMBERS, DerivationRank, Members, OriginSets, rank_of
from headwater.listeners.capture.plan.columns.rendering import ExpressionRenderer, PassedValue
from headwater.listeners.capture.plan.columns.roles import PADDING, TRANSPARENT, roles_of
from headwater.listeners.capture.plan.columns.values import (
    NO_VALUE,
    ColumnValue,
    Scope,
    StructChoice,
    StructValue,
    ValuePart,
    field_of,
    field_type,
    keeps_values,
    make_value,
    merge_values,
)
from headwater.listeners.capture.plan.tree import Expression, Plan


class OperatorOutput(NamedTuple):
    """What an operator gives."""

    scope: Scope
    rows: Members = NO_MEMBERS
    """What decides about its rows."""


_FIELD_AT_STORING: Final = frozenset(
    ["AssertNotNull", "Cast", "CheckOverflowInTableInsert", "GetStructField", "If", "IsNull"]
)


_CHOOSING: Final = frozenset(["AnyValue", "First", "Last", "Max", "Min"])
"""Aggregates that give one of the values they are given."""


class Expressions:
    def __init__(self, plan: Plan, origins: OriginSets, subqueries: Mapping[int, OperatorOutput]) -> None:
        self._plan = plan
        self._origins = origins
        self._subqueries = subqueries
        """By the node of their plan."""
        self._renderer = ExpressionRenderer(plan, origins, self._follow, self._subquery_values)
        self.assumed: Collection[int] = ()
        """Conditions that hold where we look."""
        self._fields: dict[tuple[int, tuple[str, ...]], tuple[ColumnValue, ColumnValue]] = {}
        """By the identity of what holds them, which stays here too."""
        self.missing: dict[str, None] = {}
        """Names of attributes that nothing below gives: something wasn't understood."""

    def value(self, reference: int, scope: Scope) -> ColumnValue:
        """What a column defined so holds."""
        if reference < 0:
            return self._attribute_value(-1 - reference, scope)
        found = self._follow(reference, scope)
        if found.value is not None:
            return found.value
        members = self.members([reference], scope)
        text, is_compound = self._renderer.text(reference, scope) if members else (None, False)
        is_struct = not found.fields and self._gives_struct(found.reference, found.scope)
        struct = StructValue(found.reference, found.scope) if is_struct else None
        return (
            make_value(ValuePart(members, text, is_compound), struct)
            if members
            else ColumnValue((), NO_MEMBERS, struct)
        )

    def members(
        self, references: Iterable[int], scope: Scope, how: DerivationRank = DerivationRank.IDENTITY
    ) -> Members:
        """All origins of what these are, `how` being what they are there for."""
        found: set[int] = set()
        waiting = [(reference, scope, how) for reference in references]
        seen: set[tuple[int, int, DerivationRank]] = set()
        while waiting:
            reference, place, role = waiting.pop()
            if (reference, id(place), role) in seen:
                continue
            seen.add((reference, id(place), role))
            at = self._follow(reference, place)
            if at.value is not None:
                found.update(self._origins.lift(at.value.members, role))
                continue
            expression = self._plan.expressions[at.reference]
            role = role.of(DerivationRank.TRANSFORMATION) if at.fields else role
            if "plan" in expression.details:
                found.update(self._subquery(expression, at.scope, role))
            else:
                waiting.extend((child, at.scope, role.of(inner)) for child, inner in roles_of(expression))
        return frozenset(found)

    def resolved(self, members: Members, scope: Scope) -> Members:
        """With what attributes of the query around it are, for members of a subquery."""
        outer = [member for member in self._origins.outer(members) if -1 - self._origins.place(member)[0] in scope]
        if not outer:
            return members
        found = set(members.difference(outer))
        for member in outer:
            leaf, path = self._origins.place(member)
            held = field_of(scope[-1 - leaf], path[1:], self._origins)
            found.update(self._origins.lift(held.members, rank_of(member)))
        return frozenset(found)

    def struct_fields(self, reference: int, scope: Scope) -> list[tuple[str, int, Scope]] | None:
        """Names, references and scope of the fields of a struct that is put together here; None of anything else."""
        found = self._follow(reference, scope)
        at, place = found.reference, found.scope
        if found.value is not None:
            if not isinstance(found.value.struct, StructValue):
                return None
            at, place = found.value.struct.reference, found.value.struct.scope
        if found.fields or not self._is_struct(at):
            return None
        expression = self._plan.expressions[at]
        fields = zip(expression.details["fields"], expression.inputs[1::2], strict=True)
        return [(name, reference, place) for name, reference in fields]

    def _is_stored_struct(self, inputs: tuple[int, ...]) -> bool:
        """`if(x is null, null, struct(x.a, x.b))` is how Spark stores a struct whose fields have other types."""
        condition, then, otherwise = inputs
        if self._name(condition) != "IsNull" or self._name(then) != "Literal" or not self._is_struct(otherwise):
            return False
        whole = self._plan.expressions[condition].inputs[0]
        return all(self._is_within(child, whole) for child in self._plan.expressions[otherwise].inputs[1::2])

    def _is_within(self, reference: int, whole: int) -> bool:
        """Whether it is a field of that, with another type perhaps."""
        while reference != whole:
            expression = self._plan.expressions[reference] if reference >= 0 else None
            if expression is None or expression.name not in _FIELD_AT_STORING:
                return False
            reference = expression.inputs[0]
        return True

    def _name(self, reference: int) -> str | None:
        return self._plan.expressions[reference].name if reference >= 0 else None

    def _is_struct(self, reference: int) -> bool:
        expression = self._plan.expressions[reference] if reference >= 0 else None
        return expression is not None and expression.name == "CreateNamedStruct" and "fields" in expression.details

    def field(self, held: ColumnValue, fields: tuple[str, ...]) -> ColumnValue:
        """A field of what a column holds, however deep; found once, as choices of choices have much in common."""
        if held.struct is None:
            return field_of(held, fields, self._origins)
        known = self._fields.get((id(held), fields))
        if known is None:
            known = self._fields[id(held), fields] = held, self._field_of_struct(held.struct, fields)
        return known[1]

    def _field_of_struct(self, struct: StructValue | StructChoice, fields: tuple[str, ...]) -> ColumnValue:
        if isinstance(struct, StructChoice):
            return merge_values(self.field(choice, fields) for choice in struct.choices)
        found = self._follow(struct.reference, struct.scope, fields)
        if found.value is not None:
            return found.value
        if not found.fields:
            return self.value(found.reference, found.scope)
        members = self.members([found.reference], found.scope, DerivationRank.TRANSFORMATION)
        return make_value(ValuePart(members)) if members else NO_VALUE

    def _gives_struct(self, reference: int, scope: Scope) -> bool:
        """Whether it is a struct that the query makes, or one of several."""
        if self._is_struct(reference):
            return True
        chosen = self._chosen_child(reference)
        return chosen is not None and self.struct_fields(chosen, scope) is not None

    def _chosen_child(self, reference: int) -> int | None:
        """What an aggregate chooses one of, as it is."""
        expression = self._plan.expressions[reference] if reference >= 0 else None
        if expression is None or expression.name != "AggregateExpression" or expression.inputs[0] < 0:
            return None
        function = self._plan.expressions[expression.inputs[0]]
        return function.inputs[0] if function.name in _CHOOSING else None

    def _chosen_field(self, reference: int, scope: Scope, fields: tuple[str, ...]) -> ColumnValue | None:
        """`max(struct(a, b)).b`: made of b, and a decides which. None where the structs aren't made here."""
        chosen = self._chosen_child(reference)
        whole = None if chosen is None else self.struct_fields(chosen, scope)
        if whole is None:
            return None
        names = [name for name, _, _ in whole]
        if fields[0] not in names:
            return None
        place = names.index(fields[0])
        _, inner, inner_scope = whole[place]
        value = self.value(inner, inner_scope)
        if len(fields) > 1:
            value = self.field(value, fields[1:])
        expression = self._plan.expressions[reference]
        by_value = self._plan.expressions[expression.inputs[0]].name in {"Max", "Min"}
        members = self._origins.lift(value.members, DerivationRank.AGGREGATION)
        for _, other, other_scope in whole[:place] if by_value else ():
            members |= self.members([other], other_scope, DerivationRank.CONDITIONAL)
        members |= self.members(expression.inputs[1:], scope, DerivationRank.CONDITIONAL)
        text, is_compound = self._renderer.text(reference, scope)
        return make_value(ValuePart(members, ".".join((f"({text})" if is_compound else text, *fields))))

    def _follow(self, reference: int, scope: Scope, fields: tuple[str, ...] = ()) -> PassedValue:
        """Down to the column that is passed on, or to the expression that makes something of its own."""
        while True:
            if reference < 0:
                held = self._attribute_value(-1 - reference, scope)
                if not fields or held.struct is None:
                    return PassedValue(reference, scope, field_of(held, fields, self._origins))
                if isinstance(held.struct, StructChoice):
                    return PassedValue(reference, scope, self.field(held, fields))
                reference, scope = held.struct.reference, held.struct.scope
            if fields and (chosen := self._chosen_field(reference, scope, fields)) is not None:
                return PassedValue(reference, scope, chosen)
            expression = self._plan.expressions[reference]
            if expression.name == "OuterReference":
                return PassedValue(reference, scope, field_of(self._outer(expression), fields, self._origins))
            further = self._further(expression, fields)
            if further is None:
                return PassedValue(reference, scope, None, fields)
            reference, fields = further

    def _further(self, expression: Expression, fields: tuple[str, ...]) -> tuple[int, tuple[str, ...]] | None:
        """The child that holds these fields of it, and what fields of that they are."""
        if expression.name == "GetStructField":
            return expression.inputs[0], (expression.details["field"], *fields)
        if fields and expression.name == "CreateNamedStruct" and fields[0] in expression.details.get("fields", ()):
            return expression.inputs[2 * expression.details["fields"].index(fields[0]) + 1], fields[1:]
        passed = self._passed_child(expression)
        return None if passed is None else (passed, fields)

    def _outer(self, expression: Expression) -> ColumnValue:
        """An attribute of the query around: what it is, is known when that is looked at."""
        details = expression.details
        return make_value(ValuePart(frozenset([self._origins.column(-1 - details["id"], (details["name"],))])))

    def _attribute_value(self, attribute: int, scope: Scope) -> ColumnValue:
        held = scope.get(attribute)
        if held is None:
            known = self._plan.attributes[attribute]
            self.missing[known.name if known is not None else f"#{attribute}"] = None
        return held or NO_VALUE

    def _passed_child(self, expression: Expression) -> int | None:
        """The child whose value this is, always."""
        name, inputs = expression.name, expression.inputs
        if name in TRANSPARENT or (name == "Coalesce" and len(inputs) == 1):
            return inputs[0]
        if name == "Cast":
            return inputs[0] if self._keeps_values(expression) else None
        if name == "StaticInvoke":
            return inputs[0] if expression.details.get("function") in PADDING else None
        return self._surely_chosen(inputs) if name == "If" else None

    def _surely_chosen(self, inputs: tuple[int, ...]) -> int | None:
        condition, then, otherwise = inputs
        if then == otherwise or condition in self.assumed:
            return then
        if self._is_stored_struct(inputs):
            return otherwise
        known = self._plan.expressions[condition] if condition >= 0 else None
        if known is None or known.name != "Literal" or not isinstance(known.details.get("value"), bool):
            return None
        return then if known.details["value"] else otherwise

    def _keeps_values(self, cast: Expression) -> bool:
        given = self._type(cast.inputs[0])
        wanted = cast.details.get("type")
        return given is not None and wanted is not None and keeps_values(given, self._plan.types[wanted])

    def _type(self, reference: int) -> str | None:
        """The type JSON of what is passed on; none where an expression makes it."""
        names: list[str] = []
        found: str | None = None
        while found is None:
            if reference < 0:
                attribute = self._plan.attributes[-1 - reference]
                found = None if attribute is None else attribute.type
                break
            expression = self._plan.expressions[reference]
            if expression.name in {"Cast", "Literal"}:
                found = self._plan.types[expression.details["type"]]
            elif expression.name == "GetStructField":
                names.append(expression.details["field"])
            elif expression.name not in TRANSPARENT:
                return None
            reference = expression.inputs[0] if expression.inputs else reference
        for name in reversed(names):
            found = None if found is None else field_type(found, name)
        return found

    def _subquery_values(self, node: int) -> list[tuple[int, ColumnValue]]:
        """What a subquery gives, by the ids of its attributes."""
        scope = self._subqueries[node].scope
        return [(attribute, scope.get(attribute, NO_VALUE)) for attribute in self._plan.nodes[node].output]

    def _subquery(self, expression: Expression, scope: Scope, role: DerivationRank) -> Members:
        """The rows that it has decide about the value; EXISTS asks for nothing else."""
        node = self._plan.nodes[expression.details["plan"]]
        outcome = self._subqueries[node.index]
        found = self._origins.lift(
            outcome.rows, DerivationRank.CONDITIONAL.of(role) if role < DerivationRank.JOIN else role
        )
        if expression.name != "Exists":
            inner = DerivationRank.IDENTITY if expression.name == "ScalarSubquery" else DerivationRank.TRANSFORMATION
            given = (held.members for _, held in self._subquery_values(node.index))
            found = found.union(*(self._origins.lift(member, role.of(inner)) for member in given))
        return self.resolved(found, scope)
