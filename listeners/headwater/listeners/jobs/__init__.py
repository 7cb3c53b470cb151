"""Job names and runs: what a statement belongs to, and what is recorded of applications and with-blocks."""

from __future__ import annotations

from headwater.listeners.jobs.blocks import BlockEntry, JobBlock, job
from headwater.listeners.jobs.configuration import ApplicationFacts, read_application_facts
from headwater.listeners.jobs.run_end import ENDED, FINISHED, QueryStart, RunEnd, run_end_of
from headwater.listeners.jobs.runs import ApplicationRuns, BlockRun

__all__ = [
    "ENDED",
    "FINISHED",
    "ApplicationFacts",
    "ApplicationRuns",
    "BlockEntry",
    "BlockRun",
    "JobBlock",
    "QueryStart",
    "RunEnd",
    "job",
    "read_application_facts",
    "run_end_of",
]
