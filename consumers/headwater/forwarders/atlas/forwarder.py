"""The forwarder: maps events to changes and sends them, off the event loop."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from headwater.config import read_config
from headwater.events import Event
from headwater.forwarders.api import ForwarderContext
from headwater.forwarders.atlas.entities import readable_change
from headwater.forwarders.atlas.mapping import atlas_changes
from headwater.forwarders.atlas.options import AtlasConfig
from headwater.forwarders.atlas.targets import AtlasTarget, open_target
from headwater.forwarders.blocking import BlockingForwarder


class AtlasForwarder(BlockingForwarder):
    """Sends events to Atlas."""

    def __init__(self, context: ForwarderContext) -> None:
        self._config: Final = read_config(AtlasConfig, context.options)
        self._target: Final[AtlasTarget] = open_target(self._config)
        super().__init__(self._target)

    def preview(self, event: Event) -> Iterator[str]:
        for change in atlas_changes(event, self._config):
            yield json.dumps(readable_change(change), indent=1, ensure_ascii=False)

    def send_together(self, events: Sequence[Event], is_wanted: Callable[[], bool]) -> None:
        self._target.send([atlas_changes(event, self._config) for event in events], is_wanted)
