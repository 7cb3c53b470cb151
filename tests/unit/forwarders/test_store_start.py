"""What a forwarder is sent that begins with a store: events of what it has now, and then the bus from its offsets."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select

from headwater.cli.app import main
from headwater.errors import TerminalError
from headwater.events import Event, JobLineage, JobName
from headwater.events.administration import LineageDeleted, LineageScope
from headwater.events.avro import Codec
from headwater.events.keys import headers_of, key_of
from headwater.forwarders.store_start import StoreSource, StoreStart, store_events
from headwater.journal import LocalLog
from headwater.lineage.mapping import map_event
from headwater.lineage.sql import METADATA
from headwater.lineage.store import Store, open_store
from headwater.testing.examples import EXAMPLES
from tests.kit.forwarders.stage import commit
from tests.kit.forwarders.targets import recorded
from tests.kit.stores import database_on

pytestmark = pytest.mark.slow


SERVERS = [pytest.param(name, marks=[pytest.mark.database, pytest.mark.long]) for name in ("postgres", "mariadb")]


@pytest.fixture(params=["sqlite", *SERVERS])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    with (
        database_on(request.param, request, tmp_path) as url,
        open_store(url.render_as_string(hide_password=False)) as opened,
    ):
        yield opened


def merge(store: Store, events: Iterable[Event]) -> None:
    store.merge(row for event in events for row in map_event(event))


def found(store: Store) -> list[Event]:
    with store.engine.connect() as connection:
        return list(store_events(connection))


def same(event: Event, *but: str) -> dict[str, Any]:
    """All of an event that the store keeps."""
    more = {"family_sequence", "application", "run", "catalogs", "sql", "parent_job", "job_type"}
    return event.model_dump(exclude={*more, *but})


def example(kind: str) -> Event:
    return next(event for event in EXAMPLES if event.kind == kind)


def test_a_table_comes_as_the_events_that_made_it(store: Store) -> None:
    wanted = [example(kind) for kind in ("CreateDatabase", "CreateTable", "AlterTable", "CreateView", "CreateTag")]
    merge(store, wanted)
    events = found(store)
    assert [each.event_id for each in events] == [each.event_id for each in wanted]
    for ours, theirs in zip(events, wanted, strict=True):
        assert same(ours, "context", "job", "user", "statement") == same(theirs, "context", "job", "user", "statement")
        assert ours.context.id == theirs.context.id  # type: ignore[attr-defined]


def test_what_was_dropped_does_not_come(store: Store) -> None:
    merge(store, [event for event in EXAMPLES if event.kind in {"CreateTable", "DropTable", "CreateView", "DropView"}])
    assert found(store) == []


def test_a_statement_comes_with_its_newest_commit(store: Store) -> None:
    lineage, first = example("JobLineage"), example("Committed")
    second = first.model_copy(update={"sequence": 99, "barrier": first.barrier + 1})  # type: ignore[attr-defined]
    merge(store, [lineage, first, second])
    one, other = found(store)
    assert isinstance(one, JobLineage)
    skipped = {"producer", "sequence", "time"}
    assert _without_generations(same(one, *skipped)) == _without_generations(same(lineage, *skipped))
    ours, theirs = same(other, "sequence"), same(second, "sequence")
    for fields in (ours, theirs):  # rows don't keep the order of inputs
        fields["inputs"] = sorted(fields["inputs"], key=str)
    assert ours == theirs
    assert other.parent_job == second.parent_job  # type: ignore[attr-defined]


def _without_generations(fields: dict[str, Any]) -> dict[str, Any]:
    """A table that each run creates anew has one job lineage."""
    sides = {side: [{**each, "generation": None} for each in fields[side]] for side in ("inputs", "outputs")}
    return {**fields, **sides}


def test_sending_them_to_the_store_itself_changes_nothing_there(store: Store) -> None:
    """The events say the same as the rows that they were made of."""
    kinds = {"CreateTable", "AlterTable", "CreateView", "JobLineage", "Committed"}
    merge(store, [event for event in EXAMPLES if event.kind in kinds])
    before = _counts(store)
    merge(store, found(store))
    assert {name: count for name, count in _counts(store).items() if name != "arrivals"} == before


def _counts(store: Store) -> dict[str, int]:
    tables = ("datasets", "generations", "aliases", "modifications", "job_lineage", "job_lineage_tables")
    more = ("job_lineage_columns", "commits", "places", "reads", "writes", "commit_edges", "table_edges")
    with store.engine.connect() as connection:
        return {
            name: connection.execute(select(func.count()).select_from(METADATA.tables[name])).scalar_one()
            for name in (*tables, *more)
        }


def test_what_was_deleted_does_not_come(store: Store) -> None:
    lineage, committed = example("JobLineage"), example("Committed")
    deleted = example("LineageDeleted")
    assert isinstance(deleted, LineageDeleted)
    erased_at = committed.time + timedelta(days=1)
    erased = deleted.model_copy(update={"scope": LineageScope.ALL, "of_job": committed.job, "before": erased_at})
    merge(store, [lineage, committed, erased])
    assert found(store) == []


def test_each_record_has_the_same_offset_each_time(store: Store) -> None:
    merge(store, EXAMPLES)
    sources = [StoreSource(store.engine) for _ in range(2)]
    one, other = ([each.offset for each in source.poll(100, 0).records] for source in sources)
    assert one == other
    assert len(set(one)) == len(one) > 5
    for source in sources:
        assert not source.poll(100, 0).records
        assert source.lag() == 0
        source.close()


def test_a_store_without_the_writers_offsets_is_reported(store: Store) -> None:
    with pytest.raises(TerminalError, match="by --writer-group"):
        StoreStart(store.bulk, store.engine, "other")


def test_the_bus_goes_on_where_the_store_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By the commands: a writer, more events, and then a forwarder that begins with the store."""
    log, store = tmp_path / "log", f"{tmp_path}/lineage.db"
    append(log, EXAMPLES)
    assert main(["writer", "run", "--bus", f"log:{log}", "--store", store, "--until-end", "--no-maintenance"]) == 0
    later = [commit(number) for number in range(1, 4)]
    append(log, later)
    options = ["--option", "one.type=tests.kit.forwarders.targets:Recorder", "--option", f"one.file={tmp_path}/target"]
    words = ["forward", "run", "one", "--bus", f"log:{log}", "--state", str(tmp_path / "state"), "--until-end"]
    for _ in range(2):
        capsys.readouterr()
        assert main(["-o", "json", *words, *options, "--start", "store", "--store", store]) == 0
        sent = json.loads(capsys.readouterr().out)["forwarded"][0]["sent"]
    assert sent == 0
    arrived = [event for event, _ in recorded(tmp_path / "target")]
    assert arrived[-3:] == [str(event.event_id) for event in later]
    kinds = {"JobStarted", "StatementFailed", "Heartbeat"}
    assert not set(arrived) & {str(event.event_id) for event in EXAMPLES if event.kind in kinds}
    assert str(example("AlterView").event_id) not in arrived


def append(log: Path, events: Iterable[Event]) -> None:
    with LocalLog.open(log).writer() as journal:
        for event in events:
            journal.append(Codec().encode(event), key=key_of(event), headers=headers_of(event, bytes(8)))


def test_a_job_of_another_namespace_keeps_it(store: Store) -> None:
    committed = example("Committed").model_copy(update={"job": JobName(namespace="other", name="etl")})
    merge(store, [committed])
    (event,) = found(store)
    assert event.job == JobName(namespace="other", name="etl")
