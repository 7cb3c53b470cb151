"""What offsets of Hudi's streams say: times of completion, as in checkpoints that Hudi wrote."""

from __future__ import annotations

import pytest

from headwater.events.jobs import RangeStart
from headwater.listeners.capture.formats.hudi.streams import range_of
from headwater.listeners.capture.formats.hudi.timelines import HudiInstant
from headwater.listeners.capture.formats.protocol import ReadVersion

LINE = (
    HudiInstant(20261121150659065, 1, action="commit", at=20261121150700201),
    HudiInstant(20261121150700728, 2, action="commit", at=20261121150702468),
    HudiInstant(20261121150703000, 3, action="clean", at=20261121150703500),
    HudiInstant(20261121150702000, 4, action="deltacommit", at=20261121150704000),
)


def offset(number: str) -> str:
    return f'{{"offsetCommitTime":"{number}"}}'


@pytest.mark.parametrize(
    ("start", "end", "version"),
    [
        (None, "20261121150702468", ReadVersion(20261121150700728, "20261121150702468", None, changes=True)),
        (
            "20261121150700201",
            "20261121150704000",
            ReadVersion(
                20261121150702000,
                "20261121150704000",
                RangeStart(snapshot=20261121150659065, version="20261121150700201"),
                changes=True,
            ),
        ),
        ("000", "20261121150700201", ReadVersion(20261121150659065, "20261121150700201", None, changes=True)),
        ("20261121150702468", "20261121150702468", None),
        ("000", "000", None),
        (None, "20261121150659065", ReadVersion(20261121150659065, "20261121150659065", None, changes=True)),
    ],
    ids=["first", "next", "earliest", "nothing", "empty", "as asked for"],
)
def test_a_range_between_offsets(start: str | None, end: str, version: ReadVersion | None) -> None:
    assert range_of(None if start is None else offset(start), offset(end), LINE) == version


def test_an_instant_that_the_timeline_forgot_is_not_guessed() -> None:
    found = range_of(None, offset("20251121150704000"), LINE)

    assert found is not None
    assert (found.snapshot, found.version) == (None, "20251121150704000")
    assert found.why
