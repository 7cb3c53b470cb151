"""What plans are recorded of, and the edges that each has: thought through by hand."""

from __future__ import annotations

import json
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, Final

from tests.kit.plan import queries as column_queries

_FAMILIES: Final = (
    column_queries.PROJECTIONS,
    column_queries.CHOICES,
    column_queries.AGGREGATES,
    column_queries.JOINS,
    column_queries.SETS,
    column_queries.SUBQUERIES,
    column_queries.COMMON,
    column_queries.GENERATORS,
    column_queries.NESTED,
    column_queries.WINDOWS,
)
QUERIES: Final = {query: edges for family in _FAMILIES for query, edges in islice(family.items(), 0, None, 4)}
"""Every fourth of each family: enough to see an error without a driver. All are asked of a real Spark elsewhere."""

FORMATS: Final = ("iceberg", "iceberg merge-on-read", "delta", "paimon")
CHANGES: Final = {
    "merge into {t} t using (select * from {u} where w > 0) u on t.id = u.id when matched and u.w = 5 then delete "
    "when matched then update set t.v = t.v + u.w, t.s = upper(u.z) "
    "when not matched and u.id > 3 then insert (id, v, s) values (u.id, u.w, 'x')":
        "id = u.id; v <- t.v, u.w; v = u.w; s <- u.z; ~JOIN t.id, u.id; ~FILTER u.w, u.id",
    "merge into {t} t using (select id, w as v, z as s, struct(id as x, w as y) as st from {u}) u on t.id = u.id "
    "when matched then update set * when not matched then insert *":
        "id = u.id; v = u.w; s = u.z; st.x = u.id; st.y = u.w; ~JOIN t.id, u.id",
    "merge into {t} t using {u} u on t.id = u.id and t.v > u.w when matched then update set t.st.y = u.w":
        "st.y = u.w; ~JOIN t.id, u.id, t.v, u.w",
    "update {t} set st.x = v + 1 where id = 1": "st.x <- t.v; ~FILTER t.id",
    "update {t} set v = id, s = 'x' where s = 'a'": "v = t.id; ~FILTER t.s",
    "update {t} set v = if(id > 2, v, 0), s = s where v > 1 and s = 'a'": "v <- t.v; v ? t.id; ~FILTER t.v, t.s",
    "delete from {t} where v > 1 and s = 'a'": "~FILTER t.v, t.s",
}  # fmt: skip
"""UPDATE, DELETE and MERGE have the same edges in every format, whatever their plans look like."""
BY_SUBQUERY: Final = {
    "update {t} set v = v + 1 where id in (select id from {u} where w > 1)":
        "v <- t.v; ~FILTER t.id, u.id, u.w",
    "delete from {t} where id in (select id from {u} where w > 1)": "~FILTER t.id, u.id, u.w",
}  # fmt: skip
"""Delta doesn't have these."""


IN_PAIMON: Final = {
    "merge into {t} t using (select *, w as v, z as s, struct(id as x, w as y) as st from {u} where w > 0) u "
    "on t.id = u.id when matched and u.w = 5 then delete "
    "when matched then update set t.v = t.v + u.w, t.s = upper(u.z) when not matched and u.id > 3 then insert *":
        "id = u.id; v <- t.v, u.w; v = u.w; s <- u.z; s = u.z; st.x = u.id; st.y = u.w; "
        "~JOIN t.id, u.id; ~FILTER u.w, u.id",
}  # fmt: skip
"""Instead of the first: it doesn't take the columns of an INSERT by their names."""


def changes_of(name: str) -> dict[str, str]:
    if name == "delta":
        return dict(CHANGES)
    if name == "paimon":
        return {**IN_PAIMON, **dict(islice(CHANGES.items(), 1, None)), **BY_SUBQUERY}
    return {**CHANGES, **BY_SUBQUERY}


FOLDER: Final = Path(__file__).parents[2] / "unit/plan/recorded"


@cache
def recorded(name: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((FOLDER / f"{name.replace(' ', '-')}.json").read_text())
    return content
