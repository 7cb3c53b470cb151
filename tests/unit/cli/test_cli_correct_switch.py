"""`headwater correct switch` before it starts Spark: what is refused, and that a switched correction is left alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headwater.cli import main
from headwater.cli.exits import Exit
from headwater.errors import ConfigurationError
from headwater.events import Heartbeat, JobName, JobStarted, JobStatusChanged
from headwater.events.clock import uuid7
from headwater.events.jobs import JobStatus, JobType
from headwater.events.producer import Producer
from headwater.lineage.mapping import map_event
from headwater.lineage.store import Store
from headwater.versions.correction import RerunCommand, RerunCommands, plan_correction
from headwater.versions.correction.journal import CorrectionJournal, CorrectionState
from headwater.versions.correction.stopping import run_command, start_stream, stop_jobs
from tests.kit.lineage.scripted_producer import at
from tests.kit.lineage.scripted_producer import store as put
from tests.kit.stores import open_new_store
from tests.kit.versions.corrections import order_warehouse


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    monkeypatch.setenv("HEADWATER_STORE", str(tmp_path / "lineage.db"))
    with open_new_store(str(tmp_path / "lineage.db")) as opened:
        yield opened


@pytest.fixture
def journal(store: Store) -> CorrectionJournal:
    """An open correction of the warehouse, one of whose jobs runs now."""
    story = order_warehouse()
    with store.engine.begin() as connection:
        put(connection, story.events)
        commands = RerunCommands({"details": RerunCommand("details", "jobs/details.py")})
        plan = plan_correction(connection, "orders@4", commands=commands, now=at(story.minute))
    journal = CorrectionJournal.create(store, plan, [])
    journal.move(journal.take_over(), [CorrectionState.BEGINNING], CorrectionState.OPEN)
    return journal


def test_a_correction_whose_jobs_run_is_not_switched(
    store: Store, journal: CorrectionJournal, capsys: pytest.CaptureFixture[str]
) -> None:
    """They may write what they read before the switch, over what is right."""
    live = Producer()
    about: dict[str, Any] = {"job": JobName(name="details"), "run": uuid7()}
    begun = JobStarted(job_type=JobType.BATCH, **about)
    for draft in (begun, JobStatusChanged(status=JobStatus.RUNNING, **about), Heartbeat(interval=600)):
        live.emit(draft, lambda event, _: store.merge(map_event(event)))
    assert main(["correct", "switch", journal.name, "--yes", "--wait", "1"]) == Exit.CONFIGURATION
    assert "details run now, and may write what they read before the switch" in capsys.readouterr().err


def test_jobs_are_stopped_by_their_commands_and_their_end_is_waited_for(
    store: Store, journal: CorrectionJournal, tmp_path: Path
) -> None:
    """It finds a switch that begins when the command has returned, and the job hasn't ended yet."""
    run, said, stopped = uuid7(), list[str](), list[str]()
    live = Producer()

    def tell(status: JobStatus) -> None:
        about: dict[str, Any] = {"job": JobName(name="details"), "run": run}
        begun = [JobStarted(job_type=JobType.BATCH, **about)] if status is JobStatus.RUNNING else []
        for draft in (*begun, JobStatusChanged(status=status, **about), Heartbeat(interval=600)):
            live.emit(draft, lambda event, _: store.merge(map_event(event)))

    def report(text: str) -> None:
        said.append(text)
        if text == "waits for the end of details":
            tell(JobStatus.FINISHED)

    tell(JobStatus.RUNNING)
    commands = RerunCommands({"details": RerunCommand("details", "jobs/details.py", stop="stop details")})
    plan = journal.load().plan
    with pytest.raises(ConfigurationError, match="details run now"):
        stop_jobs(store, plan, commands, seconds=0, report=said.append, run=stopped.append)
    assert stop_jobs(store, plan, commands, seconds=60, report=report, run=stopped.append) == ("details",)
    assert (stopped, said[-1]) == (["stop details"] * 2, "waits for the end of details")
    assert stop_jobs(store, plan, commands, seconds=60, report=report, run=stopped.append) == ()
    assert len(stopped) == 2


def test_a_command_of_the_users_is_run_to_its_end(tmp_path: Path) -> None:
    said = list[str]()
    place = tmp_path / "it's here"
    commands = RerunCommands({"details": RerunCommand("details", "a.py", start="touch {checkpoint}")})
    start_stream(commands, "details", str(place), said.append)
    assert place.exists()
    commands = RerunCommands({"details": RerunCommand("details", "a.py", start="false {checkpoint}")})
    start_stream(commands, "details", str(place), said.append)
    assert f"ended with exit code 1. Start the stream yourself, with the checkpoint {place}" in said[-1]
    with pytest.raises(ConfigurationError, match="the command nowhere can't be run"):
        run_command("nowhere")


def test_only_a_switch_that_was_begun_is_taken_back(
    journal: CorrectionJournal, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["correct", "switch", journal.name, "--back", "--yes"]) == Exit.CONFIGURATION
    assert f"{journal.name} is OPEN: only a switch that was begun" in capsys.readouterr().err


def test_what_is_switched_is_left_alone(journal: CorrectionJournal, capsys: pytest.CaptureFixture[str]) -> None:
    journal.move(journal.take_over(), [CorrectionState.OPEN], CorrectionState.SWITCHED)
    assert main(["correct", "switch", journal.name, "--yes"]) == Exit.DONE
    assert "there is nothing to do" in capsys.readouterr().out
