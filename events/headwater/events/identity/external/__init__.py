"""What other systems call a dataset: pure functions from its identity. Only here does a snapshot become a text."""

from __future__ import annotations

from headwater.events.identity.external import atlas, datahub, openlineage

__all__ = ["atlas", "datahub", "openlineage"]
