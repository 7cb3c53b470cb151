"""Events that couldn't be stored: shown, tried again, dropped."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias
from uuid import UUID

import pytest

from headwater.cli.app import main
from headwater.events import Committed, DatasetId, JobName, Output, TableName
from headwater.events.avro import Codec
from headwater.journal import DeadLetterLog, JournalEntry
from headwater.lineage.bulk import BusPartition, DeadLetter, DeadLetterReason, DeadLetterState, WriteBatch
from headwater.lineage.mapping import map_event
from headwater.lineage.mapping.events import map_arrival
from headwater.lineage.rows import Row, RowSet
from headwater.lineage.sql import store_digest
from headwater.lineage.store import Store, open_store
from headwater.testing.examples import EXAMPLES

pytestmark = pytest.mark.slow

GOOD = Codec().encode(EXAMPLES[0])
Asker: TypeAlias = Callable[..., tuple[int, Any]]


def letter(position: int, data: bytes) -> DeadLetter:
    where = BusPartition("cluster", "topic-id", 2)
    return DeadLetter(
        DeadLetterReason.UNDECODABLE, "the bytes end too early", "kafka", where, position, data, topic_name="events"
    )


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/store.db"


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    with open_store(url) as opened:
        opened.bulk.merge(WriteBatch(dead_letters=[letter(7, GOOD), letter(8, b"no event")]))
        yield opened


def answer_of(capsys: pytest.CaptureFixture[str], url: str, *arguments: str) -> tuple[int, Any]:
    """The exit code, and the letters of the answer."""
    status = main(["--output", "json", "dead-letter", arguments[0], "--store", url, *arguments[1:]])
    document = json.loads(capsys.readouterr().out)
    return status, document.get("dead_letters") or document.get("dead_letter") or []


def names(store: Store) -> list[str]:
    return [name for name, _ in sorted(store.bulk.dead_letters(None), key=lambda each: each[1].position)]


def states(store: Store) -> list[DeadLetterState]:
    return [each.state for _, each in sorted(store.bulk.dead_letters(None), key=lambda each: each[1].position)]


def test_those_that_wait_are_listed(capsys: pytest.CaptureFixture[str], url: str, store: Store) -> None:
    status, shown = answer_of(capsys, url, "list")
    assert status == 0
    assert {row["place"] for row in shown} == {"kafka events/2@7", "kafka events/2@8"}
    assert {row["why"] for row in shown} == {"the bytes end too early"}
    store.bulk.mark_dead_letters(names(store)[:1], DeadLetterState.DROPPED)
    assert len(answer_of(capsys, url, "list")[1]) == 1
    assert len(answer_of(capsys, url, "list", "--all")[1]) == 2


def test_of_many_the_oldest_are_listed_and_those_of_a_reason(
    capsys: pytest.CaptureFixture[str], url: str, store: Store
) -> None:
    status, shown = answer_of(capsys, url, "list", "--limit", "1")
    assert (status, len(shown)) == (0, 1)
    assert answer_of(capsys, url, "list", "--reason", "INVALID")[1] == []
    assert len(answer_of(capsys, url, "list", "--reason", "UNDECODABLE")[1]) == 2
    with pytest.raises(SystemExit):
        answer_of(capsys, url, "list", "--reason", "INVALIT")
    assert "did you mean 'INVALID'?" in capsys.readouterr().err


def test_the_bytes_of_one_can_be_taken_out(
    capsys: pytest.CaptureFixture[str], url: str, store: Store, tmp_path: Path
) -> None:
    assert answer_of(capsys, url, "show", names(store)[0], "--into", str(tmp_path / "event"))[0] == 0
    assert (tmp_path / "event").read_bytes() == GOOD


def test_one_is_shown_with_its_bytes(capsys: pytest.CaptureFixture[str], url: str, store: Store) -> None:
    _, shown = answer_of(capsys, url, "show", names(store)[1])
    assert bytes.fromhex(shown["bytes"]) == b"no event"
    assert shown["size"] == 8


def test_what_can_be_stored_now_is(capsys: pytest.CaptureFixture[str], url: str, store: Store) -> None:
    status, shown = answer_of(capsys, url, "retry", "--all")
    assert status == 1, "one of them still waits"
    assert sorted(row["now"] for row in shown) == ["stored", "waits"]
    assert states(store) == [DeadLetterState.WAITING], "the other one is gone"
    state = RowSet()
    state.merge(map_event(EXAMPLES[0]))
    with store.engine.connect() as connection:
        assert store_digest(connection) == state.digest()
    assert [each.attempts for _, each in store.bulk.dead_letters(DeadLetterState.WAITING)] == [2]


LAKE = TableName(catalog="lake", database="d", table="t")
IN_LAKE = Committed(
    producer=UUID(int=7),
    sequence=1,
    family_sequence=1,
    job=JobName(name="etl"),
    barrier=1,
    outputs=(Output(dataset=DatasetId(namespace="s3://x", name="t"), table=LAKE, snapshot=1),),
)


def digest(store: Store) -> str:
    with store.engine.connect() as connection:
        return store_digest(connection)


def by_law(*rows: Row) -> str:
    state = RowSet()
    state.merge(rows)
    return state.digest()


@pytest.mark.slow
def test_it_goes_to_the_stores_that_a_writer_gives_it_to(
    capsys: pytest.CaptureFixture[str], url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake_url, data = f"sqlite:///{tmp_path}/lake.db", Codec().encode(IN_LAKE)
    with open_store(url) as main_store, open_store(lake_url) as lake:
        main_store.bulk.merge(WriteBatch(dead_letters=[letter(1, data)]))
        lake.bulk.merge(WriteBatch(dead_letters=[replace(letter(2, data), reason=DeadLetterReason.REFUSED)]))
        monkeypatch.setenv("HEADWATER_CATALOG_STORES", f"lake={lake_url}")
        status, shown = answer_of(capsys, url, "retry", "--all")
        assert (status, [row["now"] for row in shown]) == (0, ["stored", "stored"])
        assert states(main_store) == states(lake) == []
        assert digest(lake) == by_law(*map_event(IN_LAKE))
        assert digest(main_store) == by_law(*map_arrival(IN_LAKE)), "that it came, and no more"


@pytest.mark.slow
def test_what_one_of_the_stores_refuses_still_waits(
    capsys: pytest.CaptureFixture[str], url: str, store: Store, tmp_path: Path
) -> None:
    lake_url = f"sqlite:///{tmp_path}/lake.db"
    with open_store(lake_url) as lake:
        with lake.engine.begin() as connection:
            connection.exec_driver_sql(
                "CREATE TRIGGER no_commits BEFORE INSERT ON commits BEGIN SELECT RAISE(ABORT, 'constraint failed'); END"
            )
        store.bulk.merge(WriteBatch(dead_letters=[letter(9, Codec().encode(IN_LAKE))]))
        status, shown = answer_of(capsys, url, "retry", names(store)[2], "--catalog-store", f"lake={lake_url}")
    (row,) = shown
    assert (status, row["now"]) == (1, "waits")
    assert row["why"].startswith("lake: ")
    assert states(store)[2] is DeadLetterState.WAITING


@pytest.mark.slow
def test_what_a_listener_kept_stays_in_its_own_store(
    capsys: pytest.CaptureFixture[str], url: str, tmp_path: Path
) -> None:
    lake_url = f"sqlite:///{tmp_path}/lake.db"
    with open_store(url) as main_store, open_store(lake_url) as lake:
        before = digest(lake)
        main_store.bulk.merge(WriteBatch(dead_letters=[replace(letter(1, Codec().encode(IN_LAKE)), source="jdbc")]))
        assert answer_of(capsys, url, "retry", "--all", "--catalog-store", f"lake={lake_url}")[0] == 0
        assert (digest(lake), digest(main_store)) == (before, by_law(*map_event(IN_LAKE)))


@pytest.mark.slow
def test_what_is_dropped_waits_no_longer(capsys: pytest.CaptureFixture[str], url: str, store: Store) -> None:
    assert answer_of(capsys, url, "drop", names(store)[1], "--yes")[0] == 0
    assert states(store) == [DeadLetterState.WAITING, DeadLetterState.DROPPED]


def test_dropping_shows_what_it_would_do_and_asks(
    capsys: pytest.CaptureFixture[str], url: str, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len(answer_of(capsys, url, "drop", "--all", "--dry-run")[1]) == 2
    monkeypatch.setattr("sys.stdin.isatty", lambda: False)
    monkeypatch.setenv("HEADWATER_YES", "true")
    monkeypatch.setenv("HEADWATER_ALL", "true")
    assert answer_of(capsys, url, "drop", names(store)[0])[0] == 78
    assert main(["dead-letter", "drop", "--store", url]) == 78, "no variable says --all"
    assert "Name it" in capsys.readouterr().err
    assert states(store) == [DeadLetterState.WAITING, DeadLetterState.WAITING]


@pytest.mark.parametrize("name", ["f" * 32, "no name", "F" * 32])
def test_a_name_that_there_is_not(capsys: pytest.CaptureFixture[str], url: str, store: Store, name: str) -> None:
    assert main(["dead-letter", "retry", "--store", url, name]) == 1
    assert f"there is no dead letter {name}" in capsys.readouterr().err


@pytest.mark.slow
def test_none_is_named(capsys: pytest.CaptureFixture[str], url: str, store: Store) -> None:
    assert main(["dead-letter", "drop", "--store", url]) == 78
    assert "which one? Name it" in capsys.readouterr().err


TOO_LARGE = "5 MB, where 1 MB is the limit"


class TestOfDrivers:
    """What listeners refused, in local logs beside the spools."""

    @pytest.fixture
    def spools(self, tmp_path: Path) -> Path:
        for listener, values in (("kafka", [GOOD, b"no event"]), ("other", [b"x"])):
            log = DeadLetterLog(tmp_path / "spools" / "dead-letters" / listener)
            log.keep(
                (JournalEntry(each, b"key", (("kind", b"Committed"),)), "5 MB, where 1 MB is the limit")
                for each in values
            )
        return tmp_path / "spools"

    @pytest.fixture
    def ask(self, capsys: pytest.CaptureFixture[str], url: str, spools: Path) -> Asker:
        def ask(action: str, of: str, *arguments: str) -> tuple[int, Any]:
            return answer_of(capsys, url, action, "--of", of, "--spool-dir", str(spools), *arguments)

        return ask

    def test_those_of_all_or_of_one_listener_are_listed(self, ask: Asker, tmp_path: Path) -> None:
        status, shown = ask("list", "driver:kafka")
        assert status == 0
        assert [(row["kind"], row["why"]) for row in shown] == [("Committed", TOO_LARGE)] * 2
        assert [row["place"] for row in shown] == ["driver kafka/0@0", "driver kafka/0@1"]
        assert len(ask("list", "driver")[1]) == 3
        _, one = ask("show", "driver", shown[0]["name"], "--into", str(tmp_path / "event"))
        assert ((tmp_path / "event").read_bytes(), one["headers"]) == (GOOD, ["kind=Committed"])

    def test_what_can_be_stored_is_stored_and_gone(self, ask: Asker, url: str) -> None:
        status, shown = ask("retry", "driver:kafka", "--all")
        assert (status, sorted(row["now"] for row in shown)) == (1, ["stored", "waits"])
        with open_store(url) as store:
            assert digest(store) == by_law(*map_event(EXAMPLES[0]))
            assert list(store.bulk.dead_letters(None)) == [], "it waits where it was"
        (left,) = ask("list", "driver:kafka")[1]
        assert ask("show", "driver", left["name"])[1]["size"] == len(b"no event")
        assert left["name"] == next(row["name"] for row in shown if row["now"] == "waits"), "it keeps its name"

    def test_one_is_dropped_and_the_others_stay(self, ask: Asker) -> None:
        first, second = (row["name"] for row in ask("list", "driver:kafka")[1])
        assert ask("drop", "driver", first, "--dry-run")[0] == 0
        assert ask("drop", "driver", first, "--yes")[0] == 0
        assert [row["name"] for row in ask("list", "driver:kafka")[1]] == [second]
        assert len(ask("list", "driver")[1]) == 2

    def test_what_there_is_not(self, ask: Asker, capsys: pytest.CaptureFixture[str], url: str, tmp_path: Path) -> None:
        for arguments, words in (
            (("list", "--of", "driver:kafak"), "did you mean 'kafka'?"),
            (("retry", "--of", "driver", "f" * 32), "there is no dead letter ffff"),
        ):
            assert main(["dead-letter", *arguments, "--store", url, "--spool-dir", str(tmp_path / "spools")]) in {1, 78}
            assert words in capsys.readouterr().err
        with pytest.raises(SystemExit):
            main(["dead-letter", "list", "--of", "driven"])
        assert "'driven' has no dead letters: write writer" in capsys.readouterr().err
