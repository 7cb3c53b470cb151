"""The forwarder: maps events to proposals and sends them, off the event loop."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from headwater.config import read_config
from headwater.events import Event
from headwater.forwarders.api import ForwarderContext
from headwater.forwarders.blocking import BlockingForwarder
from headwater.forwarders.datahub.delivery import DataHubTarget, open_target
from headwater.forwarders.datahub.mapping import datahub_proposals
from headwater.forwarders.datahub.options import DataHubConfig
from headwater.forwarders.datahub.proposals import Proposal, millis_since_epoch


class DataHubForwarder(BlockingForwarder):
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
        proposals = [each for event in events for each in datahub_proposals(event, self._config)]
        if proposals and is_wanted():
            self._target.send(proposals, _batch_name(events, proposals), is_wanted)


def _batch_name(events: Sequence[Event], proposals: Sequence[Proposal]) -> str:
    """Return a name that the same events have again, later ones behind earlier ones."""
    first = events[0]
    return f"{millis_since_epoch(first.time):015d}-{first.event_id}-{len(proposals):06d}"
