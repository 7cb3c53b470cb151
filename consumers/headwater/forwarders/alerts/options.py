"""The options of the forwarder of alerts."""

from __future__ import annotations

from typing import Final

from pydantic import Field

from headwater.config import Config, Seconds

DAY: Final = 86_400.0


class AlertOptions(Config):
    """Where the rules are, and how old events may be."""

    rules: str = Field(min_length=1)
    """A TOML file."""
    max_age: Seconds = Field(default=DAY, gt=0, le=30 * DAY)
    """Of events that happened longer ago nobody hears: so a replay, or a new forwarder, sends no old alerts."""
    remember: Seconds = Field(default=35 * DAY, ge=DAY)
    """For `column-changed`: a job that wasn't seen reading a column for so long doesn't read it any more."""
