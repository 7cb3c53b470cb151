"""Plans as large as there are in practice, and larger."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from headwater.listeners.capture.plan.tree import Plan
from tests.kit.plan.building import Building, column


def wide(columns: int = 2_000) -> Plan:
    """As many expressions over as many columns."""
    b = Building()
    table, ids = b.relation("t", *(f"c{n}" for n in range(columns)))
    pairs = zip(ids, ids[1:] + ids[:1], strict=True)
    b.project(table, [(f"x{n}", b.add(column(one), b.literal(), column(two))) for n, (one, two) in enumerate(pairs)])
    return b.plan()


def joins(count: int = 100, columns: int = 20) -> Plan:
    """A left-deep join of so many tables, and all their columns at the end."""
    b = Building()
    last, ids = b.relation("t0", *(f"c{n}" for n in range(columns)))
    kept = list(ids)
    for n in range(1, count + 1):
        other, new = b.relation(f"t{n}", *(f"c{n}" for n in range(columns)))
        condition = b.expression("EqualTo", column(kept[-1]), column(new[0]), symbol="=")
        kept += new
        last = b.node("Join", [last, other], kept, joinType="Inner", condition={"x": condition})
    b.node("Project", [last], kept, projectList={"x": [column(each) for each in kept]})
    return b.plan()


def filters(count: int = 2_000) -> Plan:
    """As many filters as columns, one upon the other."""
    b = Building()
    last, ids = b.relation("t", *(f"c{n}" for n in range(count)))
    for each in ids:
        last = b.filter(last, b.expression("GreaterThan", column(each), b.literal(), symbol=">"))
    return b.plan()


def with_columns(steps: int = 200, columns: int = 500) -> Plan:
    """withColumn in a loop, each made of all the others that were made: texts would double with each."""
    b = Building()
    last, kept = b.relation("t", *(f"c{n}" for n in range(columns)))
    made = kept[0]
    for n in range(steps):
        alias, new = b.alias(b.add(column(made), column(made), column(kept[n % columns])), f"x{n}")
        references = [column(each) for each in kept] + [alias]
        kept = [*kept, new]
        last = b.node("Project", [last], kept, projectList={"x": references})
        made = new
    return b.plan()


def deep(terms: int = 5_000) -> Plan:
    """`a + b + c + …` over as many columns."""
    b = Building()
    table, ids = b.relation("t", *(f"c{n}" for n in range(terms)))
    b.project(table, [("sum", b.add(*map(column, ids)))])
    return b.plan()


def every_column_from_every(columns: int = 2_000) -> Plan:
    """mapInPandas, and then something of each."""
    b = Building()
    table, _ = b.relation("t", *(f"c{n}" for n in range(columns)))
    function = b.expression("PythonUDF", function="f")
    out = [b.attribute(f"x{n}") for n in range(columns)]
    mapped = b.node("MapInPandas", [table], out, functionExpr={"x": function})
    b.filter(mapped, b.expression("IsNotNull", column(out[0])))
    return b.plan()


def unions(count: int = 300, columns: int = 50) -> Plan:
    """UNION ALL upon UNION ALL."""
    b = Building()
    last, ids = b.relation("t0", *(f"c{n}" for n in range(columns)))
    for n in range(1, count):
        other, _ = b.relation(f"t{n}", *(f"c{n}" for n in range(columns)))
        last = b.node("Union", [last, other], ids)
    return b.plan()


def structs(steps: int = 100, fields: int = 10) -> Plan:
    """A struct that is made anew of its own fields, and united with what it was, again and again."""
    b = Building()
    table, ids = b.relation("t", *(f"c{n}" for n in range(fields)))
    names = [f"f{n}" for n in range(fields)]

    def struct(values: list[int]) -> int:
        inputs = [each for value in values for each in (b.literal(), value)]
        return b.expression("CreateNamedStruct", *inputs, fields=names)

    last, (made,) = b.project(table, [("s", struct([column(each) for each in ids]))])
    for _ in range(steps):
        again = struct([b.expression("GetStructField", column(made), field=each) for each in names])
        other, _ids = b.project(last, [("s", again)])
        last = b.node("Union", [last, other], [made])
        last, (made,) = b.project(last, [("s", column(made))])
    b.project(last, [(each, b.expression("GetStructField", column(made), field=each)) for each in names])
    return b.plan()


BIG: Final[Mapping[str, Callable[[], Plan]]] = {
    "2,000 expressions over 2,000 columns": wide,
    "100 joins of 20 columns": joins,
    "2,000 filters": filters,
    "200 times withColumn, 500 columns": with_columns,
    "5,000 terms": deep,
    "mapInPandas, 2,000 columns": every_column_from_every,
    "300 nested unions of 50 columns": unions,
    "100 unions of a struct that is made anew": structs,
}
