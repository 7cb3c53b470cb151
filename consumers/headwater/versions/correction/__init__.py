"""Corrections: everything that was made from a wrong snapshot, and how it is made again.

wrong_snapshots   what was made from a wrong snapshot
planned_tables    the tables of a correction, and where their mirrors begin
planned_jobs      the jobs of a correction, and how they run again
rerun_commands    `correction.toml`
planning          the plan, from the store alone
model             what a plan says
journal           corrections that were begun, in the store, and their steps
execution         corrections carried out, on mirrors
switching         mirrors take their tables' places, each once
stopping          production's jobs around a switch
switched_tables   the same with the tables of a Spark session
"""

from headwater.versions.correction.model import (
    CorrectionMode,
    CorrectionPlan,
    JobKind,
    MirrorKind,
    PlannedJob,
    PlannedTable,
    TableVerdict,
)
from headwater.versions.correction.planning import plan_correction
from headwater.versions.correction.rerun_commands import FILE_NAME, RerunCommand, RerunCommands

__all__ = [
    "FILE_NAME",
    "CorrectionMode",
    "CorrectionPlan",
    "JobKind",
    "MirrorKind",
    "PlannedJob",
    "PlannedTable",
    "RerunCommand",
    "RerunCommands",
    "TableVerdict",
    "plan_correction",
]
