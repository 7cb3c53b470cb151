"""Branches of tables: made from a tag of main, written and read like tables, merged, and put in main's place.

model            a branch, what became of main, and the rules of names
format_branches  what a format has to do for its tables to have branches
iceberg          branches that share a table's schema, moved by one commit
paimon           directories beside main's, over the same data files
delta            shallow clones beside a table
delta_commits    what a guarded commit of Delta consists of
reporting        events, and where they go
manager          what a program uses

All of it uses Spark's JVM.
"""

from headwater.versions.branches.format_branches import FormatBranches
from headwater.versions.branches.manager import BranchManager
from headwater.versions.branches.model import (
    Branch,
    BranchError,
    ExpiryRisk,
    MainMove,
    MainMovedError,
    MainRollBack,
    MoveKind,
    NeededSnapshot,
)

__all__ = [
    "Branch",
    "BranchError",
    "BranchManager",
    "ExpiryRisk",
    "FormatBranches",
    "MainMove",
    "MainMovedError",
    "MainRollBack",
    "MoveKind",
    "NeededSnapshot",
]
