"""Roll-backs: a table goes back to a snapshot, with all that was made from it, and jobs to where that belongs.

lost_commits    what a table loses, and which versions of others contain any of it
rolled_tables   what becomes of each table
rolled_jobs     what becomes of each job
planning        the plan, from the store and from checkpoints
model           what a plan says
journal         how far a roll-back is, in the store
execution       what is done, step by step, and taken back
session_tables  tables in Spark, and what the store is told of them

`session_tables` alone uses Spark.
"""

from headwater.versions.rollback.execution import RollbackRefusedError, RollbackRun, begin_rollback
from headwater.versions.rollback.journal import Rollback, RollbackJournal, RollbackState, RollbackStatus, rollbacks_in
from headwater.versions.rollback.model import RollbackPlan, RollbackVerdict, RolledGroup, RolledJob, RolledTable
from headwater.versions.rollback.planning import plan_rollback

__all__ = [
    "Rollback",
    "RollbackJournal",
    "RollbackPlan",
    "RollbackRefusedError",
    "RollbackRun",
    "RollbackState",
    "RollbackStatus",
    "RollbackVerdict",
    "RolledGroup",
    "RolledJob",
    "RolledTable",
    "begin_rollback",
    "plan_rollback",
    "rollbacks_in",
]
