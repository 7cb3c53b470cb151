"""What grows with every run is removed by its age, and what is said of the present stays."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, func, select

from headwater.errors import ConfigurationError
from headwater.events import Closed, Committed, Input, JobStarted, JobStatusChanged, Output, StatementFailed
from headwater.events.clock import micros_of
from headwater.events.jobs import ErrorDetails, JobStatus
from headwater.lineage.maintenance import aging
from headwater.lineage.maintenance.aging import REMOVED_BY, count_old, remove_old
from headwater.lineage.maintenance.partitions import Month, drop_empty_partitions, make_partitions
from headwater.lineage.questions.completeness import gaps
from headwater.lineage.questions.jobs import jobs_of
from headwater.lineage.questions.lateness import lateness
from headwater.lineage.questions.runs import runs
from headwater.lineage.rows import tables as t
from headwater.lineage.sql import METADATA, store_digest
from headwater.lineage.sql.tables import table_of
from headwater.lineage.store import open_store
from tests.kit.lineage.scripted_producer import ScriptedProducer, at, place, store
from tests.kit.stores import DATABASES, database_on, store_on

pytestmark = [pytest.mark.slow, pytest.mark.sample(2)]

DAY = 24 * 60
GROWING = (t.RUN, t.TABLE_LINEAGE, t.FAILED_STATEMENT, t.PRODUCER, t.ARRIVAL)
BEFORE = micros_of(at(15 * DAY))


@pytest.fixture(params=DATABASES)
def engine(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    monkeypatch.setattr(aging, "wall_micros", lambda: micros_of(at(40 * DAY)))
    with store_on(request.param, request, tmp_path) as engine:
        yield engine


def daily_runs() -> list[ScriptedProducer]:
    """Of thirty days. One event of the fifth is lost; the tenth ends without a word."""
    found = []
    for day in range(1, 31):
        producer = ScriptedProducer(day)
        start = day * DAY
        producer.emit(start, JobStarted, job_type="BATCH", configuration={"a": "1", "b": "2"})
        made = {"inputs": (Input(**place("orders"), snapshot=day),), "outputs": (_output(day),)}
        producer.emit(start + 1, Committed, barrier=day, **made)
        error = ErrorDetails(type="E", message="m")
        (producer.lose if day == 5 else producer.emit)(start + 2, StatementFailed, statement=1, error=error)
        if day != 10:
            producer.emit(start + 3, JobStatusChanged, status=JobStatus.FINISHED)
            producer.emit(start + 3, Closed, complete=True)
        found.append(producer)
    return found


def _output(day: int) -> Output:
    return Output(**place("daily"), snapshot=day, made_from=(0,))


def stored(engine: Engine, *producers: ScriptedProducer) -> None:
    with engine.begin() as connection:
        store(connection, *producers)


def counts(engine: Engine) -> dict[str, int]:
    with engine.connect() as connection:
        return {kind.name: connection.scalar(select(func.count()).select_from(table_of(kind))) or 0 for kind in GROWING}


def said(engine: Engine) -> Any:
    """What answers of the present say."""
    with engine.connect() as connection:
        now = at(30 * DAY + 60)
        last_run = next(iter(runs(connection, "etl", now=now)))
        missing = [(each.cause, each.since, each.until, each.count) for each in gaps(connection, now=now)]
        used = [(each.job, each.does, each.last, each.last_run) for each in jobs_of(connection, "daily", now=now)]
        return last_run, missing, used, lateness(connection, "daily", now=now).rows


def test_old_records_of_runs_go_and_what_is_said_of_the_present_stays(engine: Engine) -> None:
    producers = daily_runs()
    stored(engine, *producers)
    before, answers = counts(engine), said(engine)
    assert count_old(engine, BEFORE) > 0
    gone = remove_old(engine, BEFORE, at_once=4)
    left = counts(engine)
    assert {name: before[name] - left[name] for name in gone if name in before} == {
        name: number for name, number in gone.items() if name in before
    }
    assert left[t.RUN.name] == 16, "of the fifteen newest days"
    assert left[t.FAILED_STATEMENT.name] == 16
    assert left[t.TABLE_LINEAGE.name] == 2 * 16
    assert left[t.PRODUCER.name] == 18, "and two of which something is missing"
    assert said(engine) == answers
    assert remove_old(engine, BEFORE) == {}
    assert count_old(engine, BEFORE) == 1, "the fifth producer is looked at again each time"


def test_on_the_way_or_in_the_end_is_the_same(engine: Engine) -> None:
    producers = daily_runs()
    stored(engine, *producers)
    remove_old(engine, BEFORE)
    with engine.connect() as connection:
        in_the_end = store_digest(connection)
    METADATA.drop_all(engine)
    METADATA.create_all(engine)
    stored(engine, *producers[:20])
    remove_old(engine, BEFORE)
    stored(engine, *producers[20:])
    remove_old(engine, BEFORE)
    with engine.connect() as connection:
        assert store_digest(connection) == in_the_end


def test_every_table_says_what_removes_its_rows() -> None:
    assert set(METADATA.tables) - REMOVED_BY.keys() <= {
        "consumer_offsets",
        "ingest_progress",
        "deletion_epochs",
        "pip5_databases",
        # groups of aligned jobs are as many as people made, and a data version is named for as long as its group is
        "aligned_jobs",
        "alignment_groups",
        "data_versions",
        # corrections are as many as people began
        "corrections",
        "correction_steps",
    }


def test_what_a_bus_may_still_have_is_refused(engine: Engine) -> None:
    with pytest.raises(ConfigurationError, match="for 7 days at least"):
        remove_old(engine, micros_of(at(35 * DAY)))


@pytest.mark.database
def test_empty_partitions_of_old_months_go(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    with database_on("postgres", request, tmp_path) as url, open_store(url.render_as_string(False)) as opened:
        engine = opened.engine
        make_partitions(engine, datetime(2020, 1, 5, tzinfo=timezone.utc), ahead=2)
        with engine.begin() as connection:
            store(connection, [_in_month(Month(2020, 2))])
        dropped = drop_empty_partitions(engine, datetime(2020, 3, 9, tzinfo=timezone.utc))
        assert [name for name in dropped if name.startswith("commits")] == ["commits_2020_01"]
        with engine.connect() as connection:
            assert connection.exec_driver_sql("SELECT count(*) FROM commits_2020_02").scalar() == 1
            assert connection.exec_driver_sql("SELECT to_regclass('commits_2020_03') IS NOT NULL").scalar()


def _in_month(month: Month) -> Committed:
    return ScriptedProducer(1).emit(0, Committed, barrier=month.barrier + 1, outputs=(_output(1),))
