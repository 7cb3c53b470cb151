"""What rows the store holds: each kind declared once, for memory and for every database.

kinds    what a kind of rows is made of, and how two of one key become one
values   what stands in a row, and the hash that is a row's key
tables   all of them
"""

from headwater.lineage.rows.kinds import Group, Keep, Kind, Row, Span, Told, merged
from headwater.lineage.rows.tables import KINDS
from headwater.lineage.rows.values import Field, Type, Value, hash_of

__all__ = [
    "KINDS",
    "Field",
    "Group",
    "Keep",
    "Kind",
    "Row",
    "Span",
    "Told",
    "Type",
    "Value",
    "hash_of",
    "merged",
]
