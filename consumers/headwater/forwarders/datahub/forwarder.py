"""The forwarder: maps events to proposals and sends them, off the event loop.

What DataHub is told of an event is a pure function, without I/O and clock.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from headwater.config import read_config
from headwater.events import Event
from headwater.forwarders.api import ForwarderContext
from headwater.forwarders.datahub.containers import propose_database, propose_drop_database
from headwater.forwarders.datahub.datasets import (
    propose_alter_table,
    propose_branch_change,
    propose_correction,
    propose_create_table,
    propose_drop_table,
    propose_reference,
    propose_truncate,
)
from headwater.forwarders.datahub.delivery import DataHubTarget, open_target
from headwater.forwarders.datahub.jobs import (
    propose_commit,
    propose_failure,
    propose_job_lineage,
    propose_job_started,
    propose_job_status,
)
from headwater.forwarders.datahub.names import DataHubNamer
from headwater.forwarders.datahub.options import DataHubConfig, DataHubNames
from headwater.forwarders.datahub.proposals import EventProposals, Proposal, millis_since_epoch
from headwater.forwarders.datahub.views import propose_alter_view, propose_create_view, propose_drop_view
from headwater.forwarders.event_facts import may_be_without_effect
from headwater.forwarders.http_delivery import BatchForwarder

PROPOSALS_OF: Final[dict[str, Callable[[Any, DataHubNamer, EventProposals], None]]] = {
    "CreateDatabase": propose_database,
    "AlterDatabase": propose_database,
    "DropDatabase": propose_drop_database,
    "CreateTable": propose_create_table,
    "AlterTable": propose_alter_table,
    "DropTable": propose_drop_table,
    "CreateView": propose_create_view,
    "AlterView": propose_alter_view,
    "DropView": propose_drop_view,
    "Truncate": propose_truncate,
    "CreateTag": propose_reference,
    "DropTag": propose_reference,
    "CreateBranch": propose_reference,
    "DropBranch": propose_reference,
    "BranchMerged": propose_branch_change,
    "MainReplaced": propose_branch_change,
    "CorrectionSwitched": propose_correction,
    "JobStarted": propose_job_started,
    "JobStatusChanged": propose_job_status,
    "JobLineage": propose_job_lineage,
    "Committed": propose_commit,
    "StatementFailed": propose_failure,
}
"""By the kind of event. DataHub has no words for the others: docs/datahub.md lists them."""


def datahub_proposals(event: Event, names: DataHubNames) -> tuple[Proposal, ...]:
    """Return what DataHub is to be told of an event, in the order in which it has to arrive.

    Nothing is said of DDL that may not have taken effect.
    """
    propose = PROPOSALS_OF.get(event.kind)
    if propose is None or may_be_without_effect(event):
        return ()
    proposals = EventProposals(event)
    propose(event, DataHubNamer(names), proposals)
    return tuple(proposals)


class DataHubForwarder(BatchForwarder):
    """Sends events to DataHub."""

    def __init__(self, context: ForwarderContext) -> None:
        self._config: Final = read_config(DataHubConfig, context.options)
        self._target: Final[DataHubTarget] = open_target(self._config)
        super().__init__(self._target)

    def preview(self, event: Event) -> Iterator[str]:
        for proposal in datahub_proposals(event, self._config):
            fields = proposal.to_obj()
            value = json.dumps(json.loads(fields["aspect"]["value"]), indent=1, ensure_ascii=False)
            yield f"{fields['changeType']} {fields['aspectName']} of {fields['entityUrn']}\n{value}"

    def send_together(self, events: Sequence[Event], is_wanted: Callable[[], bool]) -> None:
        proposals = [proposal for event in events for proposal in datahub_proposals(event, self._config)]
        if proposals and is_wanted():
            self._target.send(proposals, _batch_name(events, proposals), is_wanted)


def _batch_name(events: Sequence[Event], proposals: Sequence[Proposal]) -> str:
    """Return a name that the same events have again, later ones behind earlier ones."""
    first = events[0]
    return f"{millis_since_epoch(first.time):015d}-{first.event_id}-{len(proposals):06d}"
