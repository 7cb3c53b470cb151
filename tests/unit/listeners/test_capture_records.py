"""Records of the SQL listener in the driver, as they come over to Python."""

from __future__ import annotations

import pytest

from headwater.listeners.capture.driver_listener import split_records

LINE_ENDS = "\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"
"""What `str.splitlines` ends a line at, beside the line feed."""


@pytest.mark.parametrize("character", LINE_ENDS, ids=ascii)
def test_a_record_ends_at_a_line_feed_only(character: str) -> None:
    """Java's writer leaves some of these as they are: a comment with one in it lost its statement."""
    records = [f'{{"comment":"a{character}b"}}', '{"kind":"mark"}']
    assert split_records("".join(f"{each}\n" for each in records)) == records


def test_nothing_came_in_time() -> None:
    assert split_records(None) == []
