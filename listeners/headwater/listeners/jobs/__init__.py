"""Job names and runs: what a statement belongs to, and what is told of applications and with-blocks."""

from __future__ import annotations

from headwater.listeners.jobs.application import ApplicationFacts, application_facts
from headwater.listeners.jobs.blocks import Entry, JobBlock, job
from headwater.listeners.jobs.endings import ENDED, FINISHED, Ending, of_exit
from headwater.listeners.jobs.queries import QueryStart
from headwater.listeners.jobs.runs import Attribution, Block, Jobs

__all__ = [
    "ENDED",
    "FINISHED",
    "ApplicationFacts",
    "Attribution",
    "Block",
    "Ending",
    "Entry",
    "JobBlock",
    "Jobs",
    "QueryStart",
    "application_facts",
    "job",
    "of_exit",
]
