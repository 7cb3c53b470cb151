"""Parts are merged before a forwarder sees the event; offsets wait for them, but not for ever."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path
from uuid import UUID

import pytest

from headwater.errors import TransientError
from headwater.events import Event, Input
from headwater.forwarders.api import BusEvent, RefusedEventsError
from headwater.forwarders.assembling import EventAssembler
from headwater.lineage.bulk import DeadLetterReason, DeadLetterState
from tests.kit.forwarders.stage import ScriptedForwarder, Stage, commit, large, letters_in, retry_letters


def whole(first: int, parts: int = 3) -> list[str]:
    return names_of(large(first, parts))


def names_of(events: Sequence[Event]) -> list[str]:
    """The inputs of events, in order."""
    return [str(each.dataset) for each in inputs_of(events)]


def inputs_of(events: Sequence[Event]) -> list[Input]:
    return [each for event in events for each in getattr(event, "inputs", ())]


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    created = Stage(tmp_path, partitions=2)
    yield created
    created.state.close()


def test_parts_come_as_one_event_at_the_place_of_the_last(stage: Stage) -> None:
    first, second, third = large(1)
    for each in (first, commit(1, producer=9), second, third, commit(4)):
        stage.bus.append(each)
    target = ScriptedForwarder()
    stage.forward(target, batch="2")
    assert [(each.event_id, each.part) for each in target.received] == [
        (commit(1, producer=9).event_id, None),
        (first.event_id, None),
        (commit(4).event_id, None),
    ]
    assert names_of([target.received[1]]) == whole(1)
    assert stage.committed == {0: 5}


def test_the_offset_stays_before_the_first_part_until_the_event_is_complete(stage: Stage) -> None:
    first, second, third = large(1)
    stage.bus.append(commit(1, producer=9))
    stage.bus.append(first)
    stage.bus.append(commit(2, producer=9))
    stage.bus.append(second)
    target = ScriptedForwarder()
    runner = stage.forward(target)
    assert stage.committed == {0: 1}
    assert runner.metrics.partial == 1
    stage.bus.append(third)
    target = ScriptedForwarder()
    stage.forward(target)
    assert [each.event_id for each in target.received] == [commit(2, producer=9).event_id, first.event_id]
    assert stage.committed == {0: 5}


def test_an_event_whose_last_part_was_read_but_not_sent_is_not_passed(stage: Stage) -> None:
    """Its parts came in batches that are committed one by one."""

    async def die(_: Sequence[BusEvent]) -> None:
        raise asyncio.CancelledError

    for each in large(1):
        stage.bus.append(each)
    with pytest.raises(asyncio.CancelledError):
        stage.forward(ScriptedForwarder(die), batch="1")
    target = ScriptedForwarder()
    stage.forward(target)
    assert [each.event_id for each in target.received] == [large(1)[0].event_id]


def test_copies_of_parts_change_nothing_also_after_a_restart(stage: Stage) -> None:
    first, second, third = large(1)
    for each in (first, second, first, second, third, second, third):
        stage.bus.append(each)
    target = ScriptedForwarder()
    stage.forward(target)
    assert len(target.received) == 1
    stage.bus.append(second)
    stage.bus.append(third)
    target = ScriptedForwarder()
    stage.forward(target)
    assert target.received == []
    assert stage.committed == {0: 9}
    assert len(letters_in(stage)) == 0


def test_an_event_that_its_producer_has_gone_past_is_given_up(stage: Stage) -> None:
    first, second, _ = large(1)
    for each in (first, second, commit(4)):
        stage.bus.append(each)
    target = ScriptedForwarder()
    runner = stage.forward(target)
    assert target.received == [commit(4)]
    assert stage.committed == {0: 3}
    letter, _ = letters_in(stage)
    assert (letter.reason, letter.event) == (DeadLetterReason.INCOMPLETE, first.event_id)
    assert "part 3" in letter.error
    assert runner.metrics.dead_letters == 1


def test_what_another_producer_says_or_another_partition_has_does_not_count(stage: Stage) -> None:
    first, second, _ = large(1)
    for each in (first, second, commit(9, producer=9)):
        stage.bus.append(each)
    stage.bus.append(commit(9), 1)
    runner = stage.forward(ScriptedForwarder())
    assert runner.metrics.partial == 1


def test_an_event_that_nobody_completes_is_given_up_after_a_while(stage: Stage) -> None:
    """Its producer died, and nobody shipped the rest."""
    stage.bus.append(large(1)[0])
    runner = stage.forward(ScriptedForwarder(), patience=0.0)
    assert runner.metrics.partial == 0
    assert stage.committed == {0: 1}


def test_a_given_up_event_is_sent_once_its_last_part_comes(stage: Stage) -> None:
    first, second, third = large(1)
    for each in (first, second, commit(4)):
        stage.bus.append(each)
    stage.forward(ScriptedForwarder())
    stage.bus.append(third)
    stage.forward(ScriptedForwarder())
    target = ScriptedForwarder()
    stage.forward(target)
    assert names_of(target.received) == whole(1)
    stage.bus.append(third)
    stage.forward(target)
    assert (len(letters_in(stage)), len(target.received)) == (0, 1), "that was a copy"


def test_a_last_part_alone_is_a_dead_letter_and_holds_nothing_back(stage: Stage) -> None:
    """What was before it expired."""
    stage.bus.append(large(1)[2])
    stage.forward(ScriptedForwarder())
    (letter,) = letters_in(stage, DeadLetterState.WAITING)
    assert letter.reason is DeadLetterReason.INCOMPLETE
    assert stage.committed == {0: 1}


def test_a_refused_event_of_parts_is_retried_whole(stage: Stage) -> None:
    for each in large(1):
        stage.bus.append(each)
    stage.forward(ScriptedForwarder(RefusedEventsError({0: "no"})))
    retry_letters(stage)
    target = ScriptedForwarder(TransientError("away"))
    stage.forward(target)
    assert names_of(target.received) == whole(1)


def test_parts_that_wait_are_bounded(stage: Stage) -> None:
    assembler = EventAssembler(stage.state, stage.lineage, most_bytes=20_000)
    first = large(1)[0]
    for number in range(100):
        part = first.model_copy(update={"producer": UUID(int=number + 1)})
        record = stage.bus.append(part)
        assembler.add([record])
    held = assembler.partial * len(record.data)
    assert held <= 20_000
    assert assembler.partial + len(letters_in(stage)) == 100
