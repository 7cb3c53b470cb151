"""A mistyped key of a listener costs what the key would have said, and no event."""

from __future__ import annotations

from pathlib import Path

import pytest

from headwater.events.health import Heartbeat
from tests.kit.bus.scripts import bus_of

pytestmark = pytest.mark.slow


def test_a_wrong_key_of_a_listener_is_reported_and_its_events_arrive(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The real listener `log`, whose factory reads its keys by itself."""
    keys = {"listeners": "log", "log.dir": str(tmp_path / "log"), "log.fsnc": "always", "log.max.age": "sometime"}
    with bus_of(tmp_path / "spools", {}, keys) as bus:
        for _ in range(6):
            bus.emit(Heartbeat())
        assert bus.flush(60)
        (report,) = bus.report().listeners
        assert (report.lag, report.received) == (0, 6)
    said = " ".join(caplog.messages)
    assert "there is no key spark.headwater.log.fsnc: did you mean spark.headwater.log.fsync?" in said
    assert "spark.headwater.log.max.age: " in said
