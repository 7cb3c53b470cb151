"""Proposals in batches whose order doesn't matter, however the server treats what is in one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from datahub.metadata.schema_classes import (
    ChangeTypeClass,
    DataProcessInstanceRunEventClass,
    OperationClass,
)

from headwater.forwarders.datahub.proposals import Proposal

_TIME_SERIES: Final = {OperationClass.ASPECT_NAME, DataProcessInstanceRunEventClass.ASPECT_NAME}


def independent_batches(proposals: Iterable[Proposal], most: int) -> Iterator[list[Proposal]]:
    """Yield the proposals in batches of at most so many, each with one change of an aspect of an entity.

    An upsert takes the place of what came before it in the batch. A patch of what is already in it begins the next one,
    for the server applies it to what was stored before the batch. What is only for an entity that has no such aspect is
    left out behind another change of it.
    """
    batch: dict[object, Proposal] = {}
    for number, proposal in enumerate(proposals):
        key = _subject(proposal, number)
        if key in batch and proposal.changeType == ChangeTypeClass.CREATE:
            continue
        if len(batch) >= most or (key in batch and proposal.changeType == ChangeTypeClass.PATCH):
            yield list(batch.values())
            batch = {}
        batch.pop(key, None)
        batch[key] = proposal
    if batch:
        yield list(batch.values())


def _subject(proposal: Proposal, number: int) -> object:
    """Return what a proposal changes. Each entry of a time series is a thing of its own."""
    if proposal.aspectName in _TIME_SERIES:
        return number
    return proposal.entityUrn, proposal.aspectName
