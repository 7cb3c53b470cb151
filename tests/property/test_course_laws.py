"""The end of a dead driver's runs is the same whether all its events are read, or only those that can tell it."""

from __future__ import annotations

import tempfile
from pathlib import Path
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.events import Event, JobStarted, JobStatusChanged
from headwater.events.avro import Codec, current_schema
from headwater.events.health import Closed
from headwater.events.jobs import JobStatus
from headwater.events.keys import headers_of, key_of
from headwater.events.producer import Producer
from headwater.journal import Journal, JournalOptions
from headwater.journal.files import OS_FILES
from headwater.listeners.bus.producer_progress import ProducerProgress, append_run_ends
from headwater.testing.examples import DRAFTS
from tests.kit.effort import examples

RUNS = [
    draft.model_copy(update={"run": UUID(int=number), **more})
    for draft in DRAFTS
    if isinstance(draft, (JobStarted, JobStatusChanged))
    for number in (1, 2)
    for more in ({}, {"status": JobStatus.RUNNING} if isinstance(draft, JobStatusChanged) else {})
]
OTHERS = [draft for draft in DRAFTS if not isinstance(draft, (JobStarted, JobStatusChanged, Closed))]
LATER = b"\xc3\x01unheard!"
"""An event of a version that isn't known here."""


def stamped(drafts: list[Event]) -> list[tuple[Event, bytes]]:
    found: list[tuple[Event, bytes]] = []
    producer = Producer("application_1")
    for draft in drafts:
        producer.emit(draft, lambda event, data: found.append((event, data)))
    return found


@pytest.mark.slow
@given(
    st.lists(st.sampled_from([*RUNS, *OTHERS]), max_size=25),
    st.sets(st.integers(0, 24), max_size=2),
)
@settings(max_examples=examples(150), deadline=None)
def test_few_records_tell_what_all_would(drafts: list[Event], strange: set[int]) -> None:
    expected = ProducerProgress()
    with tempfile.TemporaryDirectory() as scratch, Journal.open(Path(scratch, "spool"), JournalOptions()) as journal:
        for number, (event, data) in enumerate(stamped(drafts)):
            headers = headers_of(event, current_schema(type(event)).fingerprint)
            if number in strange:
                later = tuple((name, b"Later" if name == "kind" else value) for name, value in headers)
                journal.append(LATER, key=key_of(event), headers=later)
                expected.is_certain = False
            else:
                offset = journal.append(data, key=key_of(event), headers=headers)
                expected.note(event, offset)
        before = journal.next_offset
        append_run_ends(journal, OS_FILES)
        with journal.tail(before) as tail:
            made = [Codec().decode(each.value) for each in tail.read().records]
    assert made == list(expected.ends())
