"""What an answer over HTTP means: arrived, later, never, or somebody has to change something."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest

from headwater.errors import TerminalError
from headwater.forwarders.http_delivery import (
    BusyTargetError,
    RefusedContentError,
    response_error,
    seconds_to_wait,
)

NOON = datetime(2026, 3, 1, 12, tzinfo=timezone.utc)


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        *[(status, None) for status in (200, 201, 202, 204)],
        *[(status, RefusedContentError) for status in (400, 413, 422)],
        *[(status, BusyTargetError) for status in (408, 425, 429, 500, 502, 503, 504, 507)],
        *[(status, TerminalError) for status in (301, 302, 304, 307, 401, 403, 404, 405, 409, 410, 415, 418, 501)],
    ],
)
def test_each_status(status: int, expected: type[Exception] | None) -> None:
    error = response_error("the target", status, body="why")
    assert type(error) is (expected or type(None))
    assert error is None or str(error).startswith(f"the target answers {status} (why)")


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("7", 7.0),
        (" 120 ", 120.0),
        ("Sun, 01 Mar 2026 12:00:30 GMT", 30.0),
        ("Sun, 01 Mar 2026 11:00:00 GMT", 0.0),
        ("-1", None),
        ("soon", None),
        ("", None),
        (None, None),
        ("٣", None),
    ],
)
def test_retry_after(header: str | None, seconds: float | None) -> None:
    assert seconds_to_wait(header, NOON) == seconds
    error = response_error("it", 429, retry_after=header, now=NOON)
    assert isinstance(error, BusyTargetError)
    assert error.retry_after == seconds


@pytest.mark.parametrize("header", ["31536000", "9" * 400, "Sun, 01 Mar 2048 12:00:00 GMT"])
def test_a_target_is_left_alone_for_ten_minutes_at_most(header: str) -> None:
    error = response_error("it", 429, retry_after=header, now=NOON)
    assert isinstance(error, BusyTargetError)
    assert error.retry_after == 600
    assert "it is tried again within 10 minutes" in str(error)


def test_a_secret_in_an_answer_is_not_repeated() -> None:
    error = response_error("it", 500, body="no such login: https://etl:hunter2hunter2@db.example/x\n" + "x" * 9000)
    assert "hunter2" not in str(error)
    assert len(str(error)) < 500
