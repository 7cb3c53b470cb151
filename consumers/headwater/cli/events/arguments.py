"""The flags of `headwater events cat` and `tail`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

from headwater.cli.events.selection import Selection, pattern
from headwater.cli.events.sources import Source, checked, source_of
from headwater.cli.flags import Flags, one_of
from headwater.cli.output import OUTPUTS
from headwater.config import unknown
from headwater.events.kinds import KINDS

_AGO = re.compile(r"(\d{1,9})([smhd])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


@dataclass(frozen=True)
class Request:
    """What was asked for."""

    source: Source
    selection: Selection
    limit: int | None
    as_json: bool
    follows: bool
    from_start: bool


def parse(action: str, summary: str, arguments: Sequence[str], usual_format: str) -> Request:
    """Ends the process, as argparse does, where the flags are wrong; a ConfigurationError where the source is."""
    follows = action == "tail"
    parser = Flags(f"headwater events {action}", f"{summary[0].upper()}{summary[1:]}.")
    parser.flag("from", source_of, "log", "log:DIR or spool:DIR; log alone is the user's own log", "SOURCE")
    parser.flag("format", one_of(OUTPUTS), usual_format, "how events look; --output's if not given", "{text,json}")
    _add_conditions(parser)
    if follows:
        parser.switch("from-start", "begin with what is there already")
    else:
        moment = "2026-03-01, 2026-03-01T12:30 (UTC unless it says otherwise), or how long ago: 90s, 15m, 2h, 7d"
        parser.flag("since", moment_of, None, f"not before: {moment}", "TIME")
        parser.flag("until", moment_of, None, "only before this time", "TIME")
    given = vars(parser.parse_args(arguments))
    selection = Selection(given["kind"], given["job"], given["table"], given.get("since"), given.get("until"))
    source = checked(given["from"])
    return Request(
        source, selection, given["limit"], given["format"] == "json", follows, given.get("from_start", False)
    )


def _add_conditions(parser: Flags) -> None:
    parser.flags("kind", kind_named, "only events of this kind, Committed say", "KIND")
    parser.flags("job", pattern, "only of this job and its steps, or whose name matches: 'orders_*'", "JOB")
    parser.flags("table", pattern, "only with this table: 'lake.sales.*', sales.orders, a dataset's name", "TABLE")
    parser.flag("limit", count, None, "end after so many events", "N")


def kind_named(text: str) -> str:
    """A kind that this version knows, whatever its letters' case."""
    known = {kind.lower(): kind for kind in KINDS}
    if text.lower() not in known:
        raise ValueError(unknown("kind", text, KINDS))
    return known[text.lower()]


def moment_of(text: str) -> datetime:
    """A moment, or how long ago it was."""
    ago = _AGO.fullmatch(text)
    try:
        if ago:
            return datetime.now(timezone.utc) - timedelta(**{_UNITS[ago[2]]: int(ago[1])})
        moment = datetime.fromisoformat(text.removesuffix("Z") + "+00:00" if text.endswith("Z") else text)
    except (ValueError, OverflowError):
        raise ValueError(f"{text!r} is no time: write 2026-03-01, 2026-03-01T12:30:00Z or 15m") from None
    return moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)


def count(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise ValueError(f"{text!r} is no number of events: write 1 or more")
    return int(text)
