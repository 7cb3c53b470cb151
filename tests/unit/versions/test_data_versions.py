"""Which versions belong together, in stories whose answers were found by hand."""

from __future__ import annotations

import gc
import re
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from sqlalchemy import Connection, event

from headwater.errors import ConfigurationError
from headwater.events.administration import LineageDeleted
from headwater.events.jobs import CommitKind
from headwater.events.scalars import Format
from headwater.lineage.maintenance.deletion import expire_before
from headwater.lineage.maintenance.purge import purge
from headwater.lineage.questions.answers import LimitReason
from headwater.lineage.questions.names import find
from headwater.lineage.questions.states import upstream_state
from headwater.versions import AlignmentAnswer, ContainedAnswer, NoAlignmentError, TableAt, align, check, contained
from headwater.versions.cuts import Cut, DataVersion, TableSnapshot
from tests.kit.lineage.scripted_producer import at, store
from tests.kit.lineage.stories import StoryProducer
from tests.kit.versions.two_jobs import ALL, two_jobs


def labels(answer: object) -> list[str]:
    return sorted(each.table.label for each in answer.rows)  # type: ignore[attr-defined]


def test_the_snapshots_of_the_streaming_warehouse_belong_together(connection: Connection) -> None:
    """Seed 004: a query of B and C reads B@11 and C@15, because both were made from A@20."""
    store(connection, two_jobs())
    answer = align(connection, ["b", "c"])
    assert labels(answer) == ["lake.db.b@11", "lake.db.c@15"]
    assert [each.label for each in answer.cut] == ["lake.db.a@20"]
    assert {each.table.label: each.steps_behind for each in answer.rows} == {"lake.db.b@11": 1, "lake.db.c@15": 0}


def test_the_newest_versions_differ_and_the_answer_says_how(connection: Connection) -> None:
    store(connection, two_jobs())
    answer = check(connection, ["b", "c"])
    assert answer.is_consistent is False
    [shared] = answer.rows
    assert shared.dataset.label == "lake.db.a"
    found = {table.label: [each.table.label for each in contents] for table, contents in shared.contained}
    assert found == {"lake.db.b@12": ["lake.db.a@21"], "lake.db.c@15": ["lake.db.a@20"]}
    [commit] = shared.lacked or ()
    assert (commit.table.label, commit.kind, commit.job) == ("lake.db.a@21", "APPEND", "etl")
    assert [(table.label, reader.label) for table, reader in commit.lacking] == [("lake.db.c@15", "lake.db.c")]
    assert check(connection, {"b": 11, "c": 15}).is_consistent is True


@pytest.mark.parametrize("ask", [lambda connection: align(connection, ["b", "c"]), lambda each: contained(each, "c")])
def test_what_comes_while_it_is_answered_isnt_said_to_be_included(
    ask: Callable[[Connection], AlignmentAnswer | ContainedAnswer], connection: Connection
) -> None:
    """It finds an answer that reads rows, then asks how complete the store is, and has missed what came between."""
    story = two_jobs()
    store(connection, story)
    newest = story.commit("c@16", reads=["a@21"], replaced=ALL, job="Job-B")
    coming = [newest]

    def come(*given: Any) -> None:
        if coming and "FROM arrivals" in given[2]:
            store(connection, [coming.pop()])

    event.listen(connection, "before_cursor_execute", come)
    answer = ask(connection)
    assert not coming
    assert answer.complete_until == newest.time
    assert any("lake.db.a@21" in each.label for each in _versions_in(answer))


@pytest.mark.parametrize(
    "ask",
    [
        lambda connection: align(connection, ["b", "c"]),
        lambda connection: check(connection, ["b", "c"]),
        lambda connection: contained(connection, "c"),
    ],
)
def test_an_answer_leaves_nothing_to_the_garbage_collector(
    ask: Callable[[Connection], object], connection: Connection
) -> None:
    """What refers to each other outlives its question, and a collection that finds much of it makes a later one
    wait."""
    store(connection, two_jobs())
    gc.freeze()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        ask(connection)
        gc.collect()
        left = {type(each).__qualname__ for each in gc.garbage if type(each).__module__.startswith("headwater")}
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.unfreeze()
    assert not left


def _versions_in(answer: AlignmentAnswer | ContainedAnswer) -> Sequence[TableAt]:
    return answer.cut if isinstance(answer, AlignmentAnswer) else [each.table for each in answer.rows]


def test_a_table_goes_with_the_version_that_is_in_the_other(connection: Connection) -> None:
    store(connection, two_jobs())
    assert check(connection, ["a@20", "b@11"]).is_consistent is True
    assert check(connection, ["a@21", "b@11"]).is_consistent is False
    assert labels(align(connection, ["a", "c"])) == ["lake.db.a@20", "lake.db.c@15"]


def test_versions_from_before_a_table_had_anything_of_what_they_share_dont_count(connection: Connection) -> None:
    """It finds empty versions of both, and one that is empty beside one that isn't; `z` is in all of them."""
    story = StoryProducer()
    story.commit("z@1")
    for name in "efgh":
        story.commit(f"{name}@1", reads=["z@1"] if name in "gh" else [])
    for name, source in (("e", "a@20"), ("f", "a@21"), ("g", "a@20"), ("h", "a@21")):
        story.commit(f"{name}@2", reads=[source])
    store(connection, story)
    for names in ("ef", "eh"):
        with pytest.raises(NoAlignmentError, match=r"contains lake\.db\.a@20"):
            align(connection, [*names])
    answer = align(connection, ["g", "h"])
    assert labels(answer) == ["lake.db.g@1", "lake.db.h@1"]
    assert [each.label for each in answer.cut] == ["lake.db.z@1"]


def test_at_a_version_of_the_source(connection: Connection) -> None:
    store(connection, two_jobs())
    assert labels(align(connection, ["b", "c"], at="a@20")) == ["lake.db.b@11", "lake.db.c@15"]
    with pytest.raises(NoAlignmentError, match=r"lake\.db\.c@15 contains lake\.db\.a@20") as none:
        align(connection, ["b", "c"], at="a@21")
    assert re.search(
        r"a@21, there since [-0-9]+ [:0-9]+ UTC, isn't yet in lake\.db\.c, which the job Job-B writes", f"{none.value}"
    )
    with pytest.raises(ConfigurationError, match="names no version"):
        align(connection, ["b", "c"], at="a")


def test_at_a_cut_of_aligned_jobs(connection: Connection) -> None:
    store(connection, two_jobs())
    cut = Cut({"lake.db.a": TableSnapshot(20, generation="1")})
    for at_cut in (cut, DataVersion(1, cut, "Job-A", 0), {"a": 20}):
        assert labels(align(connection, ["b", "c"], at=at_cut)) == ["lake.db.b@11", "lake.db.c@15"]
    with pytest.raises(ConfigurationError, match="dropped and made again"):
        align(connection, ["b", "c"], at=Cut({"lake.db.a": TableSnapshot(20, generation="0")}))


def test_at_a_compaction_is_at_the_version_before(connection: Connection) -> None:
    story = StoryProducer()
    story.commit("a@1")
    story.commit("a@2", kind=CommitKind.COMPACT)
    story.commit("b@1", reads=["a@1"], replaced=ALL)
    story.commit("c@1", reads=["a@2"], replaced=ALL)
    store(connection, story)
    assert labels(align(connection, ["b", "c"], at="a@2")) == ["lake.db.b@1", "lake.db.c@1"]


def test_incremental_jobs_contain_what_they_have_reached(connection: Connection) -> None:
    story = StoryProducer()
    for number in range(1, 7):
        story.commit(f"a@{number}")
    story.commit("b@1", reads=["a@0..3"])
    story.commit("b@2", reads=["a@3..5"])
    story.commit("c@1", reads=["a@0..5"])
    story.commit("c@2", reads=["a@5..6"])
    store(connection, story)
    assert labels(align(connection, ["b", "c"])) == ["lake.db.b@2", "lake.db.c@1"]
    [row] = contained(connection, "b").rows
    assert (row.table.label, row.is_whole) == ("lake.db.a@5", False)  # Delta's version 0 was not read
    assert row.since == 0


def test_changes_that_were_never_read_are_a_reason_not_to_say_yes(connection: Connection) -> None:
    story = StoryProducer()
    for number in range(1, 7):
        story.commit(f"a@{number}")
    story.commit("b@1", reads=["a@0..3"])
    story.commit("b@2", reads=["a@4..6"])
    story.commit("c@1", reads=["a@0..6"])
    store(connection, story)
    assert check(connection, ["b", "c"]).is_consistent is None


def test_where_numbers_have_no_order_changes_have_to_join_where_the_last_ended(connection: Connection) -> None:
    story = StoryProducer()
    story.format = Format.ICEBERG
    for number, parent in ((501, None), (302, 501), (903, 302), (104, 903)):
        story.commit(f"a@{number}", parent=parent)
    story.commit("b@1", reads=["a@501..302"])
    story.commit("b@2", reads=["a@903..104"])  # 903 was never read
    story.commit("c@1", reads=["a@501..104"])
    story.commit("d@1", reads=["a@501..302"])
    story.commit("d@2", reads=["a@302..104"])
    store(connection, story)
    assert check(connection, ["b", "c"]).is_consistent is None
    assert check(connection, ["c", "d"]).is_consistent is True


@pytest.mark.parametrize(("read", "unknown"), [("b@5", "lake.db.b@5"), ("b@3..6", "lake.db.b@5")])
def test_who_read_what_an_unknown_writer_wrote_may_contain_anything(
    connection: Connection, read: str, unknown: str
) -> None:
    story = StoryProducer()
    story.commit("a@10", replaced=ALL)
    story.commit("b@4", reads=["a@10"], replaced=ALL)
    story.commit("b@6", reads=["a@10"])
    story.commit("c@1", reads=[read], replaced=ALL)
    story.commit("d@1", reads=["a@10"], replaced=ALL)
    store(connection, story)
    answer = check(connection, ["c", "d"])
    assert answer.is_consistent is None
    assert [(each.why, each.about) for each in answer.limits] == [(LimitReason.UNKNOWN_WRITER, unknown)]


def test_a_table_whose_writes_were_purged_is_not_where_lineage_begins(own_connection: Connection) -> None:
    story = StoryProducer()
    story.commit("a@10", replaced=ALL)
    story.commit("b@5", reads=["a@10"], replaced=ALL)
    story.commit("a@12", replaced=ALL, minute=500)
    story.commit("c@1", reads=["b@5"], replaced=ALL)
    story.commit("d@1", reads=["a@12"], replaced=ALL)
    store(own_connection, story)
    assert check(own_connection, ["c", "d"]).is_consistent is False  # a@10 is in c, by b
    draft = expire_before(at(250))
    story.emit(600, LineageDeleted, scope=draft.scope, before=draft.before)
    store(own_connection, story)
    assert check(own_connection, ["c", "d"]).is_consistent is None
    own_connection.commit()
    assert purge(own_connection.engine).writes == 2
    answer = check(own_connection, ["c", "d"])
    assert answer.is_consistent is None
    assert [(each.why, each.about) for each in answer.limits] == [(LimitReason.UNKNOWN_WRITER, "lake.db.b@5")]


def test_a_third_table_does_not_hide_how_two_differ(connection: Connection) -> None:
    story = StoryProducer()
    story.commit("a@1", replaced=ALL)
    story.commit("b@1", reads=["a@1"], replaced=ALL)
    story.commit("a@2", replaced=ALL)
    story.commit("c@1", reads=["a@2", "b@1"], replaced=ALL)
    story.commit("d@1", reads=["c@1"], replaced=ALL)
    store(connection, story)
    assert check(connection, ["c", "d"]).is_consistent is True
    assert check(connection, ["b", "c"]).is_consistent is False
    assert check(connection, ["b", "c", "d"]).is_consistent is False


def test_a_compaction_is_the_version_before(connection: Connection) -> None:
    story = StoryProducer()
    story.commit("a@1")
    story.commit("b@1", reads=["a@1"], replaced=ALL)
    story.commit("a@2", kind=CommitKind.COMPACT)
    story.commit("c@1", reads=["a@2"], replaced=ALL)
    store(connection, story)
    assert check(connection, ["b", "c"]).is_consistent is True
    assert labels(align(connection, ["a", "b", "c"])) == ["lake.db.a@1", "lake.db.b@1", "lake.db.c@1"]


def test_what_is_read_on_two_ways_has_to_be_the_same_on_both(connection: Connection) -> None:
    story = StoryProducer()
    story.commit("a@1")
    story.commit("b@1", reads=["a@1"], replaced=ALL)
    story.commit("a@2")
    story.commit("c@1", reads=["a@2", "b@1"], replaced=ALL)
    story.commit("d@1", reads=["a@2"], replaced=ALL)
    story.commit("e@1", reads=["c@1"], replaced=ALL)
    store(connection, story)
    assert check(connection, ["c", "d"]).is_consistent is False  # c has a@1 by way of b, too
    assert check(connection, ["c", "e"]).is_consistent is True  # both have the same mixture, that of c@1
    assert check(connection, ["b", "d"]).is_consistent is False


def test_after_a_rollback_a_number_is_another_version(connection: Connection) -> None:
    story = StoryProducer()
    story.format = Format.PAIMON
    story.commit("a@1")
    story.commit("a@2")
    story.commit("b@1", reads=["a@2"], replaced=ALL)
    story.commit("a@1", kind=CommitKind.ROLLBACK, parent=2)
    story.commit("a@2")
    story.commit("c@1", reads=["a@2"], replaced=ALL)
    store(connection, story)
    assert check(connection, ["b", "c"]).is_consistent is False


def test_a_table_that_was_made_again_is_another_one(connection: Connection) -> None:
    story = StoryProducer()
    story.commit("a@1")
    story.commit("b@1", reads=["a@1"], replaced=ALL)
    story.generations["a"] = "2"
    story.commit("a@1")
    story.commit("c@1", reads=["a@1"], replaced=ALL)
    store(connection, story)
    assert check(connection, ["b", "c"]).is_consistent is False


def test_what_spark_does_not_show_makes_it_unknown(connection: Connection) -> None:
    story = StoryProducer()
    story.commit("a@1")
    story.commit("b@1", reads=["a@1"], replaced=ALL, opaque="an RDD")
    story.commit("c@1", reads=["a@1"], replaced=ALL)
    store(connection, story)
    answer = check(connection, ["b", "c"])
    assert answer.is_consistent is None
    assert [each.why for each in answer.limits] == [LimitReason.OPAQUE]
    with pytest.raises(NoAlignmentError, match="an RDD"):
        align(connection, ["b", "c"])


def test_a_table_that_another_system_loads_is_at_the_versions_that_were_read(connection: Connection) -> None:
    story = StoryProducer()
    story.commit("b@1", reads=["a@7"], replaced=ALL)
    story.commit("c@1", reads=["a@8"], replaced=ALL)
    store(connection, story)
    assert check(connection, ["a@7", "b"]).is_consistent is True
    assert check(connection, ["a", "b"]).is_consistent is False
    assert labels(align(connection, ["a", "b"])) == ["lake.db.a@7", "lake.db.b@1"]
    assert labels(align(connection, ["a", "c"])) == ["lake.db.a@8", "lake.db.c@1"]


def test_what_is_behind_a_shared_table_does_not_matter(connection: Connection) -> None:
    story = StoryProducer()
    story.commit("a@1", opaque="an RDD")
    story.commit("b@1", reads=["a@1"], replaced=ALL)
    story.commit("c@1", reads=["a@1"], replaced=ALL)
    store(connection, story)
    assert check(connection, ["b", "c"]).is_consistent is True


def test_a_source_without_versions_can_not_be_compared(connection: Connection) -> None:
    story = StoryProducer()
    story.commit("b@1", reads=["files"], replaced=ALL)
    story.commit("c@1", reads=["files"], replaced=ALL)
    store(connection, story)
    assert check(connection, ["b", "c"]).is_consistent is None


def test_a_commit_that_nobody_reported_makes_it_unknown(connection: Connection) -> None:
    story = StoryProducer()
    story.commit("a@1")
    story.commit("b@1", reads=["a@1"])
    story.commit("b@3", reads=["a@1"])  # nobody reported b@2
    story.commit("c@1", reads=["a@1"], replaced=ALL)
    store(connection, story)
    answer = check(connection, ["b", "c"])
    assert answer.is_consistent is None
    assert LimitReason.UNKNOWN_WRITER in {each.why for each in answer.limits}
    with pytest.raises(NoAlignmentError, match="its writer is unknown"):
        align(connection, ["b", "c"])


def test_tables_that_share_nothing_belong_together(connection: Connection) -> None:
    story = StoryProducer()
    story.commit("a@1")
    story.commit("b@1")
    store(connection, story)
    answer = check(connection, ["a", "b"])
    assert (answer.is_consistent, answer.rows) == (True, ())


def test_two_tables_that_feed_each_other(connection: Connection) -> None:
    """Each version is made from the one before of the other table. The first of `a` has nothing of `b`, and no version
    of `b` has nothing of `a`."""
    story = StoryProducer()
    story.commit("a@1")
    for number in range(1, 200):
        story.commit(f"b@{number}", reads=[f"a@{number}"])
        story.commit(f"a@{number + 1}", reads=[f"b@{number}"])
    store(connection, story)
    with pytest.raises(NoAlignmentError, match=r"lake\.db\.b@199 contains lake\.db\.a@199"):
        align(connection, ["a", "b"])


def test_no_versions_named_twice_and_columns_are_errors(connection: Connection) -> None:
    story = two_jobs()
    story.commit("files", reads=["a@21"])
    store(connection, story)
    with pytest.raises(ConfigurationError, match=r"lake\.db\.files has no versions"):
        check(connection, ["files", "b"])
    with pytest.raises(ConfigurationError, match="named twice"):
        check(connection, ["b@11", "b@12"])
    with pytest.raises(ConfigurationError, match="two tables or more"):
        align(connection, ["b"])
    with pytest.raises(ConfigurationError, match="names a column"):
        check(connection, ["b@11.x", "c"])


def test_a_commit_of_iceberg_whose_parent_is_lost_is_no_beginning(connection: Connection) -> None:
    """Only the first commit of a table has no parent. What was in the table before this one isn't known, though it was
    made from the same version as another table."""
    story = StoryProducer()
    story.format = Format.ICEBERG
    story.commit("src@71", parent=None)
    story.commit("src@22", parent=71)
    story.commit("b@501", reads=["src@22"], parent=None)
    story.commit("c@902", reads=["src@22"], parent=None)
    story.commit("b@302", reads=["src@22"], parent=None)
    store(connection, story)
    assert check(connection, ["b@501", "c@902"]).is_consistent is True
    answer = check(connection, ["b@302", "c@902"])
    assert answer.is_consistent is None
    assert [(each.why, each.about, each.detail) for each in answer.limits] == [
        (LimitReason.UNKNOWN_WRITER, "lake.db.b@302", "its parent is unknown")
    ]


def test_a_state_after_a_purge_says_that_writers_are_unknown(own_connection: Connection) -> None:
    story = StoryProducer()
    for number in range(1, 5):
        story.commit(f"src@{number}")
    for number in range(1, 5):
        story.commit(f"a@{number}", reads=[f"src@{number}"])
    story.commit("b@1", reads=["a@4"], minute=500)
    store(own_connection, story)
    draft = expire_before(at(250))
    story.emit(600, LineageDeleted, scope=draft.scope, before=draft.before)
    store(own_connection, story)
    own_connection.commit()
    assert purge(own_connection.engine).writes > 0
    answer = upstream_state(own_connection, find(own_connection, "b").dataset)
    assert LimitReason.UNKNOWN_WRITER in {each.why for each in answer.limits}
