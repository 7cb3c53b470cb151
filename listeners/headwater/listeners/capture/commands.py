"""What capture makes of a command: a write, a modification of a catalog, both, or nothing, and then why.

Every command of Spark and of the formats is in the register, by its class's simple name; what isn't, is reported as a
Gap.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

from headwater.events import Event
from headwater.listeners.capture.context import CaptureContext
from headwater.listeners.capture.formats.protocol import StatementWrites
from headwater.listeners.capture.plan.tree import Plan, PlanNode
from headwater.listeners.capture.statements import Statement

WriteReader: TypeAlias = Callable[[PlanNode, Plan, CaptureContext], StatementWrites | None]
"""Asked once for each plan; None where it can't be determined what is written, which makes a Gap."""
CatalogTranslator: TypeAlias = Callable[[PlanNode, Statement, CaptureContext], Iterable[Event]]
"""Drafts, in order; asked for each statement that didn't fail."""


@dataclass(frozen=True)
class CommandRule:
    write: WriteReader | None = None
    catalog: CatalogTranslator | None = None
    """Reported before the write's commit."""
    ignored: str | None = None
    """Why nothing is recorded of it."""
    proven: bool = False
    """What it says of a catalog rests on commits that hooks noted: so it is reported of a statement that failed,
    too."""
    formats: tuple[str, ...] = field(default=())
