"""Proposals in batches whose order doesn't matter, however the server treats what is in one."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, Final

from datahub.metadata.schema_classes import (
    ChangeTypeClass,
    DataProcessInstanceRunEventClass,
    GenericAspectClass,
    MetadataChangeProposalClass,
    OperationClass,
)

from headwater.forwarders.datahub.proposals import Proposal

_TIME_SERIES: Final = {OperationClass.ASPECT_NAME, DataProcessInstanceRunEventClass.ASPECT_NAME}


def independent_batches(proposals: Iterable[Proposal], most: int) -> Iterator[list[Proposal]]:
    """Yield the proposals in batches of at most so many, each with one change of an aspect of an entity.

    An upsert takes the place of what came before it in the batch. A patch joins a patch, and behind an upsert it begins
    the next batch, for the server applies it to what was stored before the batch. What is only for an entity that has
    no such aspect is left out behind another change of it.
    """
    batch: dict[object, Proposal] = {}
    for number, proposal in enumerate(proposals):
        key = _subject(proposal, number)
        if key in batch and proposal.changeType == ChangeTypeClass.CREATE:
            continue
        if proposal.changeType == ChangeTypeClass.PATCH and (earlier := batch.get(key)) is not None:
            joined = _joined(earlier, proposal)
            if joined is not None:
                batch[key] = joined
                continue
        else:
            joined = proposal
        if len(batch) >= most or joined is None:
            yield list(batch.values())
            batch = {}
        batch.pop(key, None)
        batch[key] = proposal
    if batch:
        yield list(batch.values())


def _joined(earlier: Proposal, later: Proposal) -> Proposal | None:
    """Return one patch for two of the same aspect; None if the first is no patch, or they name elements differently."""
    if not (isinstance(earlier, MetadataChangeProposalClass) and isinstance(later, MetadataChangeProposalClass)):
        return None
    if earlier.aspect is None or later.aspect is None:
        return None
    first, second = json.loads(earlier.aspect.value), json.loads(later.aspect.value)
    content: Any
    if isinstance(first, list) and isinstance(second, list):
        content = _last_of_each_path([*first, *second])
    elif isinstance(first, dict) and isinstance(second, dict) and _keys_of(first) == _keys_of(second):
        content = {**second, "patch": _last_of_each_path([*first["patch"], *second["patch"]])}
    else:
        return None
    aspect = GenericAspectClass(value=json.dumps(content).encode(), contentType=later.aspect.contentType)
    return MetadataChangeProposalClass(
        entityType=later.entityType,
        entityUrn=later.entityUrn,
        changeType=later.changeType,
        aspectName=later.aspectName,
        aspect=aspect,
        systemMetadata=later.systemMetadata,
    )


def _last_of_each_path(operations: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the operations without those that a later one on the same path undoes. No path leads into another."""
    return list({operation["path"]: operation for operation in operations}.values())


def _keys_of(patch: dict[str, Any]) -> object:
    return patch.get("arrayPrimaryKeys")


def _subject(proposal: Proposal, number: int) -> object:
    """Return what a proposal changes. Each entry of a time series is a thing of its own."""
    if proposal.aspectName in _TIME_SERIES:
        return number
    return proposal.entityUrn, proposal.aspectName
