"""What became of a batch is counted, and told in the log; and how far the bus is."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final

from headwater.consumers.sources import Source
from headwater.consumers.writer.plain import Written
from headwater.consumers.writer.vitals import Vitals
from headwater.lineage.bulk import DeadLetter

_LOG: Final = logging.getLogger(__name__)
_MOST: Final = 10
"""So many letters of a batch are told one by one."""
_LONGEST: Final = 300


def count(vitals: Vitals, written: Written, seconds: float) -> None:
    vitals.merged(seconds, written.rows)
    vitals.batches += 1
    vitals.events += written.events
    vitals.rows += written.rows
    vitals.letters += written.letters
    vitals.retries += written.retries
    vitals.cache_hits += written.left_out
    vitals.letters_by.update(letter.reason.value for letter in written.kept)
    told = {"events": written.events, "rows": written.rows, "letters": written.letters, "seconds": round(seconds, 3)}
    if written.events:
        _LOG.debug("stored a batch", extra={"headwater": told})
    tell_letters(written.kept)


def look(vitals: Vitals, source: Source) -> None:
    """A broker is asked for it. Some sources have no partitions that come and go."""
    vitals.behind = source.behind()
    vitals.rebalances = getattr(source, "rebalances", 0)
    vitals.partitions = getattr(source, "partitions", None)


def tell_letters(letters: Sequence[DeadLetter]) -> None:
    for letter in letters[:_MOST]:
        about = {
            "reason": letter.reason.value,
            "topic": letter.topic_name,
            "partition": letter.partition.number,
            "position": letter.position,
            "kind": letter.kind,
            "why": letter.words[:_LONGEST],
        }
        _LOG.warning("a dead letter", extra={"headwater": about})
    if len(letters) > _MOST:
        _LOG.warning("and more dead letters of the same batch", extra={"headwater": {"count": len(letters) - _MOST}})
