"""The rows that a store holds. Each kind of row is declared once, for memory and for every database.

model        what a kind of row consists of, and how two rows of one key combine
values       the values of a row, and the hash that is its key
tables       all kinds of rows
memory       rows in memory, and a digest to compare stores by
tombstones   which rows a deletion covers, or a catalog that has lineage switched off
"""

from headwater.lineage.rows.memory import RowBatch, RowDigest, RowSet, merge_by_key
from headwater.lineage.rows.model import ColumnGroup, GroupValues, Precedence, Row, RowKind, RowTimes, combine_rows
from headwater.lineage.rows.tables import KINDS
from headwater.lineage.rows.values import ColumnType, RowColumn, Value, hash_key

__all__ = [
    "KINDS",
    "ColumnGroup",
    "ColumnType",
    "GroupValues",
    "Precedence",
    "Row",
    "RowBatch",
    "RowColumn",
    "RowDigest",
    "RowKind",
    "RowSet",
    "RowTimes",
    "Value",
    "combine_rows",
    "hash_key",
    "merge_by_key",
]
