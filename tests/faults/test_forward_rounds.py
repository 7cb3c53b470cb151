"""Forwarders whose process is killed and whose targets fail: every event arrives at each, in order per key."""

from __future__ import annotations

from pathlib import Path

import pytest

from headwater.local import KafkaServer
from tests.kit.forwarders.process import RECORDER, Arrival, ForwardProcess
from tests.kit.forwarders.round import AT_ONCE, INSTANCE, ForwardRound, job_commits, kafka_bus, log_bus
from tests.kit.seeds import seed
from tests.kit.waiting import until


@pytest.mark.slow
def test_a_target_that_hangs_delays_none_beside_it(tmp_path: Path) -> None:
    """One that blocks its whole thread, as a client without a time limit does; and one that is away."""
    bus, append = log_bus(tmp_path)
    events = job_commits(1, 501)
    append(events)
    (tmp_path / "gone.away").touch()
    forwarders = {
        "hanging": {"type": "tests.kit.forwarders.targets:Hanging"},
        "gone": {"type": RECORDER, "file": str(tmp_path / "gone")},
        "well": {"type": RECORDER, "file": str(tmp_path / "well")},
    }
    with ForwardProcess(bus, tmp_path / "state", forwarders, "--drain-seconds", "2") as process:
        until(lambda: len(Arrival([tmp_path / "well"]).ids) == 500, "all events at the target that is well")
        found = process.await_status("gone", "waiting")
        assert "the target is away" in str(found.waiting_for)
        assert "abc123" not in str(found.waiting_for)
        assert not (tmp_path / "gone").exists()
        (tmp_path / "gone.away").unlink()
        until(lambda: len(Arrival([tmp_path / "gone"]).ids) == 500, "all events at the target that came back")
        assert process.stop() == 3, "one that hangs isn't done in time"


@pytest.mark.slow
@pytest.mark.long
def test_events_survive_kills_and_faults_on_a_log(tmp_path: Path) -> None:
    bus, append = log_bus(tmp_path)
    outcome = ForwardRound(tmp_path, seed(), bus, append).play_and_check(6, with_datahub=True)
    assert (outcome.kills, outcome.events) == (6, 6 * AT_ONCE)


@pytest.mark.kafka
@pytest.mark.long
def test_events_survive_kills_and_faults_on_kafka(tmp_path: Path, kafka: KafkaServer) -> None:
    bus, append = kafka_bus(kafka)
    outcome = ForwardRound(tmp_path, seed(), bus, append, "--kafka", INSTANCE).play_and_check(6, with_datahub=False)
    assert (outcome.kills, outcome.events) == (6, 6 * AT_ONCE)
