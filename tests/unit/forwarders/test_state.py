"""The state of a forwarder keeps what it was given, also when the power fails or the disk is full."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from headwater.errors import TransientError
from headwater.forwarders.progress import ForwarderProgress
from headwater.forwarders.state import ForwarderState
from headwater.lineage.bulk import BusPartition

PARTITION = BusPartition("cluster", "topic", 0)
SYNCHRONOUS_FULL = 2


def test_a_transaction_is_on_the_disk_before_offsets_are_committed(tmp_path: Path) -> None:
    with ForwarderState(tmp_path, "x") as state:
        assert state.select("PRAGMA synchronous") == [(SYNCHRONOUS_FULL,)]


def test_a_full_disk_is_named_and_writing_goes_on_when_it_has_room(tmp_path: Path) -> None:
    with ForwarderState(tmp_path, "x") as state:
        state.select("PRAGMA max_page_count = 1")  # as many pages as there are
        with pytest.raises(TransientError, match="disk is full"), state.transaction() as connection:
            connection.execute("INSERT INTO lineage VALUES (x'01', zeroblob(100000), 1)")
        state.select("PRAGMA max_page_count = 100000")
        ForwarderProgress(state).record_positions({PARTITION: 7})
        assert ForwarderProgress(state).positions() == {PARTITION: 7}


def test_an_error_within_a_transaction_takes_all_of_it_back(tmp_path: Path) -> None:
    with ForwarderState(tmp_path, "x") as state:
        with pytest.raises(sqlite3.IntegrityError), state.transaction() as connection:
            connection.executemany("INSERT INTO lineage VALUES (x'01', x'02', ?)", [(1,), (2,)])
        assert state.select("SELECT count(*) FROM lineage") == [(0,)]
