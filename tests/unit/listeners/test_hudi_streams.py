"""What offsets of Hudi's streams say: times of completion, as in checkpoints that Hudi wrote."""

from __future__ import annotations

from typing import Any

import pytest

from headwater.events.jobs import RangeStart
from headwater.listeners.capture.formats.hudi.read_versions import range_of, versions_of_batch
from headwater.listeners.capture.formats.hudi.timelines import HudiInstant
from headwater.listeners.capture.formats.protocol import ReadVersion
from headwater.listeners.capture.plan.tree import PlanNode
from headwater.listeners.capture.statements import OffsetRange, StatementFacts

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
        (
            "000",
            "20261121150700201",
            ReadVersion(20261121150659065, "20261121150700201", RangeStart(snapshot=-1), changes=True),
        ),
        (
            "20261121150700201",
            "20261121150703500",
            ReadVersion(
                20261121150700728,
                "20261121150703500",
                RangeStart(snapshot=20261121150659065, version="20261121150700201"),
                changes=True,
            ),
        ),
        (
            "20261121150703500",
            "20261121150704000",
            ReadVersion(
                20261121150702000,
                "20261121150704000",
                RangeStart(snapshot=20261121150700728, version="20261121150703500"),
                changes=True,
            ),
        ),
        (
            "20261121150659065",
            "20261121150700728",
            ReadVersion(
                20261121150700728,
                "20261121150700728",
                RangeStart(snapshot=20261121150659065, version="20261121150659065"),
                changes=True,
            ),
        ),
        ("20261121150702468", "20261121150702468", None),
        ("000", "000", None),
    ],
    ids=["next", "earliest", "up to a clean", "from a clean", "as asked for", "nothing", "empty"],
)
def test_a_range_between_offsets(start: str, end: str, version: ReadVersion | None) -> None:
    """It finds a first batch whose beginning isn't known, and a batch that ends at an instant which changes no row."""
    assert range_of(offset(start), offset(end), LINE) == version


def test_a_beginning_that_hudi_doesnt_show_is_not_guessed() -> None:
    """It finds a stream that begins at the latest offset, or reads only a part, and passes for one of all changes."""
    unseen = range_of(None, offset("20261121150702468"), LINE)
    partial = range_of(offset("000"), offset("20261121150702468"), LINE, is_partial=True)
    for found in (unseen, partial):
        assert found is not None
        assert (found.snapshot, found.since, found.changes) == (20261121150700728, None, True)
        assert found.why


def test_the_offset_in_front_of_the_first_batch_is_the_sources_own() -> None:
    """It finds an offset of another table, and one of two streams on one table that begin at different ones."""
    line = [
        {"instant": str(each.number), "completed": each.completed, "action": each.action, "at": str(each.at)}
        for each in LINE
    ]
    looked_up: dict[str, Any] = {
        "begins": [["/t", offset("20261121150700201")], ["/other", offset("000")]],
        "timelines": {"/t": line},
    }
    node = PlanNode(0, "StreamingRelation", None, (), (), {})
    offsets = OffsetRange(None, offset("20261121150702468"))
    facts = StatementFacts(looked_up={"hudi": looked_up})
    [found] = versions_of_batch("/t", node, offsets, facts)
    assert (found.since, found.why) == (RangeStart(snapshot=20261121150659065, version="20261121150700201"), None)
    looked_up["begins"].append(["/t", offset("000")])
    [found] = versions_of_batch("/t", node, offsets, facts)
    assert found.since is None
    assert found.why


def test_an_instant_that_the_timeline_forgot_is_not_guessed() -> None:
    found = range_of(offset("000"), offset("20251121150704000"), LINE)

    assert found is not None
    assert (found.snapshot, found.version) == (None, "20251121150704000")
    assert found.why
