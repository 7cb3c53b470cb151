"""Drafts of the event that makes one dataset of several."""

from __future__ import annotations

from collections.abc import Sequence

from headwater.errors import TerminalError
from headwater.events.administration import DatasetsUnified
from headwater.events.names import DatasetId


class NothingToUnifyError(TerminalError):
    """They are one already."""


def unify(others: Sequence[DatasetId], into: DatasetId, *, reason: str = "", by: str | None = None) -> DatasetsUnified:
    """`into` is what the others are from now on. What was told of them stays where it is, and questions follow."""
    several = tuple(dict.fromkeys(each for each in others if each != into))
    if not several:
        raise NothingToUnifyError(f"{into} is the only dataset that was named: name those that are the same as it")
    return DatasetsUnified(dataset=into, others=several, reason=reason, by=by)
