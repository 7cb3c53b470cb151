"""What wakes a continuous job: a commit that the store learns of, and a data version of another job."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headwater.errors import TransientError
from headwater.lineage.questions.names import find
from headwater.lineage.rows.values import hash_key
from headwater.lineage.sql.writer_tables import ALIGNMENT_GROUPS
from headwater.lineage.store import Store, open_store
from headwater.versions.aligned import AlignedQuery, Cut, GroupClaims, TableSnapshot, aligned_query, proposals
from headwater.versions.aligned import query as query_module
from headwater.versions.aligned.proposals import StoreWatch, ask
from tests.kit.lineage.scripted_producer import store as put
from tests.kit.lineage.stories import StoryProducer
from tests.kit.stores import open_new_store
from tests.kit.waiting import until

GROUP = hash_key(ALIGNMENT_GROUPS.name, ["shop"])
SECONDS = 60


@pytest.fixture(autouse=True)
def asked_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proposals, "_SECONDS", 0.02)
    monkeypatch.setattr(proposals, "_SECONDS_WHILE_AWAY", 0.02)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_new_store(str(tmp_path / "store.db")) as opened:
        yield opened


def commit(store: Store, story: StoryProducer, name: str) -> None:
    known = len(story.events)
    story.commit(name)
    with store.engine.begin() as connection:
        put(connection, story.events[known:])


def test_a_commit_and_a_claim_wake_a_job(store: Store) -> None:
    """A table that the store doesn't know at first becomes known; a commit to another table wakes nobody."""
    story, woken = StoryProducer(), threading.Event()
    claims = GroupClaims(store, "shop")
    claims.enter(["lake.db.a"])
    with StoreWatch(store, "shop", ["lake.db.a"], woken, poll_seconds=0.04):
        assert woken.wait(SECONDS), "the first answer is news"
        woken.clear()
        commit(store, story, "a@20")
        assert woken.wait(SECONDS)
        woken.clear()
        claims.claim(1, Cut({"lake.db.a": TableSnapshot(20)}), "other")
        assert woken.wait(SECONDS)


def test_an_answer_changes_with_the_tables_of_the_group_alone(store: Store) -> None:
    story = StoryProducer()
    commit(store, story, "a@20")
    commit(store, story, "b@1")
    with store.engine.connect() as connection:
        key = find(connection, "lake.db.a").dataset.key
        before = ask(connection, GROUP, [key])
    commit(store, story, "b@2")
    with store.engine.connect() as connection:
        assert ask(connection, GROUP, [key]) == before
    commit(store, story, "a@21")
    with store.engine.connect() as connection:
        assert ask(connection, GROUP, [key]) != before
        assert ask(connection, GROUP, []) == (None, frozenset())


def test_a_store_that_is_away_ends_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """It finds a watch that ends with the first error, or fills the log with them."""
    woken = threading.Event()
    with open_store(str(tmp_path / "store.db")) as store, StoreWatch(store, "shop", [], woken, poll_seconds=0.04):
        assert woken.wait(SECONDS)
        with store.engine.begin() as connection:
            connection.exec_driver_sql("ALTER TABLE alignment_groups RENAME TO elsewhere")
        until(lambda: caplog.records, "a warning")
        woken.clear()
        with store.engine.begin() as connection:
            connection.exec_driver_sql("ALTER TABLE elsewhere RENAME TO alignment_groups")
        assert woken.wait(SECONDS), "what came while it was away isn't missed"
    assert sum("doesn't say what is new" in each.message for each in caplog.records) == 1


class TwiceAway:
    """A job's loop whose store doesn't answer twice; then there is one barrier."""

    def __init__(self, query: AlignedQuery) -> None:
        self.query = query
        self.asked = 0
        self.played: list[Any] = []

    def begin(self, held: object) -> None:
        """Do nothing."""

    def next_barrier(self) -> Any:
        self.asked += 1
        if self.asked <= 2:
            raise TransientError("the store doesn't answer")
        return "a barrier"

    def play(self, step: object, barrier: Any) -> bool:
        self.played.append(barrier)
        self.query.stop()
        return True


def test_a_continuous_job_waits_for_a_store_that_is_away(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    query = aligned_query("shop", {"a": "lake.db.a"}, name="job", checkpoint=str(tmp_path / "c"), store=store)
    loop = TwiceAway(query)
    monkeypatch.setattr(query_module, "JobLoop", lambda *_: loop)
    monkeypatch.setattr(query, "_session", lambda: None)
    assert query.run(lambda _: None, trigger="continuous", poll_seconds=0.01) == 1
    assert (loop.asked, loop.played) == (3, ["a barrier"])
    assert caplog.text.count("the job job waits: the store doesn't answer") == 2


def test_a_job_that_ends_by_itself_fails_where_its_store_is_away(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = aligned_query("shop", {"a": "lake.db.a"}, name="job", checkpoint=str(tmp_path / "c"), store=store)
    monkeypatch.setattr(query_module, "JobLoop", lambda *_: TwiceAway(query))
    monkeypatch.setattr(query, "_session", lambda: None)
    with pytest.raises(TransientError, match="doesn't answer"):
        query.run(lambda _: None)
