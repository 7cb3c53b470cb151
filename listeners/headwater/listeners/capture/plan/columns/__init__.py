"""Where the columns of a query come from, read off its analyzed plan."""

from __future__ import annotations

from headwater.listeners.capture.plan.columns.model import Lineage, Origin
from headwater.listeners.capture.plan.tree import Plan

__all__ = ["Lineage", "Origin", "lineage_of", "merge_lineage"]


def lineage_of(plan: Plan, query: int) -> Lineage:
    return Lineage()


def merge_lineage(plan: Plan, command: int) -> Lineage:
    return Lineage()
