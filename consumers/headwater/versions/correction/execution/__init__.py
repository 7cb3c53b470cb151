"""Corrections carried out: mirrors are made, rows corrected, and jobs run on them. Production isn't touched.

tables       what has to be done with tables, whatever their format
spark_tables the same with the tables of a Spark session
redirects    the lens that leads the chain's names to the mirrors
streams      mirrors that streams read, and forks of their checkpoints
stages       which jobs run, in which order, and which have to run again
reruns       a job's processes
job_driver   what runs in such a process
corrector    begins, runs and ends a correction
differences  what a correction changes
"""

from headwater.versions.correction.execution.corrector import Corrector, RunPreview, RunResult, begin_correction
from headwater.versions.correction.execution.redirects import correction
from headwater.versions.correction.execution.tables import CorrectionError, CorrectionTables, Mirror

__all__ = [
    "CorrectionError",
    "CorrectionTables",
    "Corrector",
    "Mirror",
    "RunPreview",
    "RunResult",
    "begin_correction",
    "correction",
]
