"""Where the columns of a query come from, read off its analyzed plan.

    lineage = lineage_of(plan, query)
    lineage.columns[attribute]  # direct origins, and what chooses among values: CONDITIONAL, WINDOW
    lineage.indirect            # what decides about rows: JOIN, FILTER, GROUP_BY, SORT

What is decided here:

- IDENTITY is a value passed on: under another name, as a field of a struct, by a cast that can't change it (int to
  bigint, float to double, varchar to string). Every other cast is a TRANSFORMATION, also one that Spark adds for
  storing. So is a value that CASE, IF or coalesce chose, and an element of an array or map: its path ends before it.
- AGGREGATION wins over what comes before and after it. `count(*)` has no origins.
- WINDOW (partitions and order) and CONDITIONAL tell of one column. A scalar subquery's filters are CONDITIONAL.
- DISTINCT groups by all columns. INTERSECT and EXCEPT give the left side's values, and all columns of both sides
  are FILTER. What explode() makes rows of is FILTER as well. EXISTS tells only what decides about its rows.
- Nothing is guessed: columns that come through an operator that isn't known have no origins, and `unknown` names it.
"""

from __future__ import annotations

from headwater.listeners.capture.plan.columns.analysis import lineage_of
from headwater.listeners.capture.plan.columns.commands import merge_lineage
from headwater.listeners.capture.plan.columns.origins import (
    ColumnOrigin,
    QueryLineage,
    match_by_name,
    match_by_position,
)

__all__ = ["ColumnOrigin", "QueryLineage", "lineage_of", "match_by_name", "match_by_position", "merge_lineage"]
