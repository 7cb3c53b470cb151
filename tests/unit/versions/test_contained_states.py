"""What tables contain is states, not how far they have got: verdicts that were wrong when only the newest one counted.

Each story is one that a random history finds too, here with the answer found by hand.
"""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import pytest
from sqlalchemy import Connection

from headwater.errors import ConfigurationError
from headwater.events import BranchMerged, Committed, CreateBranch, Event, MainReplaced
from headwater.events.jobs import CommitKind, Input, Output, OverwriteScope, RangeStart, ReadMode
from headwater.events.scalars import Format
from headwater.lineage.questions.answers import LimitReason
from headwater.testing.examples import CONTEXT
from headwater.versions import NoAlignmentError, align, check, contained
from headwater.versions.shared_tables import SharedTables
from tests.kit.lineage.all_stories import named
from tests.kit.lineage.scripted_producer import dataset, store
from tests.kit.lineage.stories import StoryProducer

ALL, PART, UNKNOWN = OverwriteScope.ALL, OverwriteScope.PART, OverwriteScope.UNKNOWN


def test_a_mixture_by_way_of_another_table(connection: Connection) -> None:
    """`b` reads `p` at two states, of which one is by way of `q`: so it has two states of `x`, too."""
    story = StoryProducer()
    story.commit("x@1")
    story.commit("p@1", reads=["x@1"], replaced=ALL)
    story.commit("q@1", reads=["p@1"], replaced=ALL)
    story.commit("x@2")
    story.commit("p@2", reads=["x@2"], replaced=ALL)
    story.commit("b@1", reads=["p@2", "q@1"], replaced=ALL)
    story.commit("c@1", reads=["x@2"], replaced=ALL)
    store(connection, story)
    assert check(connection, ["b", "c"]).is_consistent is False
    with pytest.raises(NoAlignmentError):
        align(connection, ["b", "c"])


def test_a_table_read_at_two_versions_has_two_states(connection: Connection) -> None:
    story = StoryProducer()
    story.commit("a@1")
    story.commit("a@2")
    story.commit("t@1", reads=["a@1", "a@2"], replaced=ALL)
    story.commit("s@1", reads=["a@1"])
    story.commit("s@2", reads=["a@2"])
    story.commit("u@1", reads=["a@2"], replaced=ALL)
    store(connection, story)
    assert check(connection, ["t", "u"]).is_consistent is False
    assert check(connection, ["s", "u"]).is_consistent is False
    assert check(connection, ["s", "t"]).is_consistent is True
    assert [each.table.label for each in contained(connection, "s").rows] == ["lake.db.a@1", "lake.db.a@2"]


def test_a_part_that_was_replaced_can_have_removed_a_state(connection: Connection) -> None:
    """Which rows a MERGE left isn't known: `s` has one state or two."""
    story = StoryProducer()
    story.commit("a@1")
    story.commit("a@2")
    story.commit("s@1", reads=["a@1"])
    story.commit("s@2", reads=["a@2"], replaced=PART, kind=CommitKind.MERGE)
    story.commit("t@1", reads=["a@1", "a@2"], replaced=ALL)
    story.commit("u@1", reads=["a@2"], replaced=ALL)
    store(connection, story)
    assert check(connection, ["s", "t"]).is_consistent is None
    assert check(connection, ["s", "u"]).is_consistent is None


def test_a_lost_event_makes_no_yes(connection: Connection) -> None:
    """`c` reads `x` beside `a`, and what `a@2` was made from is lost."""
    story = StoryProducer()
    for number in (1, 2, 3):
        story.commit(f"x@{number}")
    story.commit("a@1")
    lost = story.commit("a@2", reads=["x@2"], replaced=ALL)
    story.commit("b@1", reads=["a@2"], replaced=ALL)
    story.commit("c@1", reads=["a@2", "x@3"], replaced=ALL)
    store(connection, [each for each in story.events if each is not lost])
    answer = check(connection, ["b", "c"])
    assert answer.is_consistent is None
    assert [(each.why, each.about) for each in answer.limits] == [(LimitReason.UNKNOWN_WRITER, "lake.db.a@2")]
    store(connection, [lost])
    assert check(connection, ["b", "c"]).is_consistent is False


def test_what_is_held_back_is_not_the_newest(connection: Connection) -> None:
    story = StoryProducer()
    story.format = Format.ICEBERG
    story.commit("a@71", parent=None)
    story.commit("b@11", reads=["a@71"], parent=None, replaced=ALL)
    hold_back(story, "b@52", parent=11, reads=["a@71"])
    store(connection, story)
    assert [each.table.snapshot for each in align(connection, ["a", "b"]).rows] == [71, 11]
    assert check(connection, ["a", "b"]).tables[1].snapshot == 11
    assert contained(connection, "b", 52).of.snapshot == 52


def hold_back(story: StoryProducer, text: str, *, parent: int, reads: list[str]) -> None:
    """Commit what `spark.wap.id` holds back: it is on no branch."""
    event = story.commit(text, parent=parent, reads=reads)
    output = event.outputs[0].model_copy(update={"main": False})  # type: ignore[attr-defined]
    story.events[-1] = event.model_copy(update={"outputs": (output,)})


@pytest.mark.parametrize("is_origin_known", [True, False])
def test_what_is_published_is_made_from_what_its_origin_was(connection: Connection, is_origin_known: bool) -> None:
    story = StoryProducer()
    story.format = Format.ICEBERG
    story.commit("a@71", parent=None)
    story.commit("a@72", parent=71)
    story.commit("b@11", parent=None)
    hold_back(story, "b@52", parent=11, reads=["a@71"])
    story.commit("b@13", parent=11)
    picked = [Input(**story.where(REF), mode=ReadMode.CHANGES, snapshot=52, since=RangeStart(snapshot=11))]
    story.commit("b@14", parent=13, kind=CommitKind.CHERRY_PICK, also=picked if is_origin_known else ())
    story.commit("c@1", reads=["a@72"], parent=None)
    store(connection, story)
    answer = check(connection, ["b", "c"])
    assert answer.is_consistent is (False if is_origin_known else None)
    if not is_origin_known:
        assert "what was picked" in answer.limits[0].detail


REF = {"table": "b", "branch": None}


def test_a_stream_keeps_what_was_rolled_back(connection: Connection) -> None:
    """Paimon gives the number 2 again. `t` has read the first snapshot 2, and goes on after the number."""
    story = rolled_back()
    store(connection, story)
    assert check(connection, ["t", "u"]).is_consistent is False
    assert {each.table.label for each in contained(connection, "t").rows} == {"lake.db.a@2", "lake.db.a@3"}


def rolled_back() -> StoryProducer:
    story = StoryProducer()
    story.format = Format.PAIMON
    story.commit("a@1", parent=None)
    story.commit("a@2")
    story.commit("t@1", reads=["a@0..2"])
    story.commit("a@1", kind=CommitKind.ROLLBACK, parent=None, replaced=UNKNOWN)
    story.commit("a@2")
    story.commit("a@3")
    story.commit("t@2", reads=["a@2..3"])
    story.commit("u@1", reads=["a@3"], replaced=ALL)
    return story


def test_a_number_that_came_again_and_whose_event_is_lost(connection: Connection) -> None:
    """The snapshot that was rolled back isn't taken for the one that came in its place."""
    story = rolled_back()
    del story.events[4]
    store(connection, story)
    assert check(connection, ["t", "u"]).is_consistent is False
    assert LimitReason.UNKNOWN_WRITER in {each.why for each in contained(connection, "u").limits}


def test_merges_across_a_rollback(connection: Connection) -> None:
    story = StoryProducer()
    story.format = Format.PAIMON
    story.commit("a@1", parent=None)
    story.commit("a@2")
    story.commit("t@1", reads=["a@2"])
    story.commit("a@1", kind=CommitKind.ROLLBACK, parent=None, replaced=UNKNOWN)
    story.commit("a@2")
    story.commit("t@2", reads=["a@2"], kind=CommitKind.MERGE)
    story.commit("u@1", reads=["a@2"], replaced=ALL)
    store(connection, story)
    assert check(connection, ["t", "u"]).is_consistent is False


@pytest.mark.parametrize("merge", [BranchMerged, MainReplaced])
def test_a_fast_forward_puts_the_snapshots_of_a_branch_in_the_place_of_others(
    connection: Connection, merge: type[Event]
) -> None:
    story = StoryProducer()
    story.format = Format.PAIMON
    story.commit("x@1", parent=None)
    story.commit("a@1", parent=None)
    made = {"context": CONTEXT, "identifier": named("a"), "dataset": dataset("a"), "generation": "1"}
    story.emit(story.minute + 0.5, CreateBranch, **made, branch="side", snapshot=1)
    story.commit("a@2")
    story.commit("b@1", reads=["a@2"], replaced=ALL)
    story.commit("a[side]@2", reads=["x@1"])
    story.emit(story.minute + 0.5, merge, **made, branch="side", snapshot=2)
    story.commit("c@1", reads=["a@2"], replaced=ALL)
    story.commit("d@1", reads=["x@1"], replaced=ALL)
    store(connection, story)
    assert check(connection, ["b", "c"]).is_consistent is False
    assert {each.table.label for each in contained(connection, "c").rows} >= {"lake.db.x@1"}
    assert check(connection, ["c", "d"]).is_consistent is True
    assert check(connection, ["a", "c"]).is_consistent is True


def test_a_merge_that_is_a_snapshot_of_its_own_leaves_the_numbers_of_main_what_they_are(connection: Connection) -> None:
    """And main is made from the branch from then on."""
    story = StoryProducer()
    story.format = Format.PAIMON
    story.commit("x@1", parent=None)
    story.commit("a@1", parent=None)
    made = {"context": CONTEXT, "identifier": named("a"), "dataset": dataset("a"), "generation": "1"}
    story.emit(story.minute + 0.5, CreateBranch, **made, branch="side", snapshot=1)
    story.commit("a@2")
    story.commit("b@1", reads=["a@2"], replaced=ALL)
    story.commit("a[side]@2", reads=["x@1"])
    story.emit(story.minute + 0.5, BranchMerged, **made, branch="side", snapshot=3, produced=3, parent=2)
    story.commit("a@3", reads=["a[side]@2"], replaced=ALL)
    story.commit("c@1", reads=["a@2"], replaced=ALL)
    story.commit("d@1", reads=["a@3"], replaced=ALL)
    store(connection, story)
    assert check(connection, ["b", "c"]).is_consistent is True
    assert check(connection, ["c", "d"]).is_consistent is False
    assert {each.table.label for each in contained(connection, "d").rows} >= {"lake.db.x@1"}


def test_manifests_that_were_rewritten_are_no_new_version(connection: Connection) -> None:
    story = StoryProducer()
    story.format = Format.ICEBERG
    story.commit("a@71", parent=None)
    story.commit("b@1", reads=["a@71"], parent=None, replaced=ALL)
    story.commit("a@22", parent=71, kind=CommitKind.REPLACE)
    story.commit("c@1", reads=["a@22"], parent=None, replaced=ALL)
    store(connection, story)
    assert check(connection, ["b", "c"]).is_consistent is True


def test_a_number_of_a_table_that_was_dropped_is_no_version_of_the_one_that_is_there(connection: Connection) -> None:
    """The event of the new `a@2` is lost: the old one has its number."""
    story = StoryProducer()
    story.commit("a@1")
    story.commit("a@2")
    story.commit("b@1", reads=["a@2"], replaced=ALL)
    story.generations["a"] = "2"
    story.commit("a@1")
    store(connection, story)
    with pytest.raises(ConfigurationError, match="dropped and made again"):
        check(connection, ["a@2", "b"])


@pytest.mark.parametrize("is_left_out", [True, False])
def test_what_is_unknown_of_a_shared_table_hides_no_state_of_it(connection: Connection, is_left_out: bool) -> None:
    """`a` is at its own version alone, whatever it was made from. So `b`, which has an older state too, doesn't go
    with it, whether that doubt is behind what is left out or was loaded."""
    story = StoryProducer()
    story.commit("a@1")
    story.commit("a@2", also=[Input(dataset=None, opaque="an RDD")])
    story.commit("b@1", reads=["a@1", "a@2"], replaced=ALL)
    store(connection, story)
    assert answer_of(connection, ["a", "b"], is_left_out=is_left_out) == (False, ())


@pytest.mark.parametrize("is_left_out", [True, False])
def test_what_is_unknown_behind_a_shared_table_is_in_both(connection: Connection, is_left_out: bool) -> None:
    """`p` differs, and so what is behind it does, too: that isn't worth a word."""
    story = StoryProducer()
    story.commit("x@1")
    story.commit("y@1", reads=["x@1"])
    story.commit("p@1", reads=["y@1"])
    story.commit("x@2")
    story.commit("y@2", reads=["x@2"], replaced=ALL, also=[Input(dataset=None, opaque="an RDD")])
    story.commit("p@2", reads=["y@2"], replaced=ALL)
    story.commit("b@1", reads=["p@1"], replaced=ALL)
    story.commit("c@1", reads=["p@2"], replaced=ALL)
    store(connection, story)
    assert answer_of(connection, ["b", "c"], is_left_out=is_left_out) == (False, ())


@pytest.mark.parametrize("is_left_out", [True, False])
def test_a_compaction_of_a_version_without_a_known_writer(connection: Connection, is_left_out: bool) -> None:
    """`c` reads `x` beside `a`, and what `a@2`, of which `a@3` has the same rows, was made from is lost."""
    story = StoryProducer()
    for number in (1, 2, 3):
        story.commit(f"x@{number}")
    story.commit("a@1")
    lost = story.commit("a@2", reads=["x@2"], replaced=ALL)
    story.commit("a@3", kind=CommitKind.COMPACT)
    story.commit("b@1", reads=["a@3"], replaced=ALL)
    story.commit("c@1", reads=["a@3", "x@3"], replaced=ALL)
    store(connection, [each for each in story.events if each is not lost])
    limits = ((LimitReason.UNKNOWN_WRITER, "lake.db.a@2"),)
    assert answer_of(connection, ["b", "c"], is_left_out=is_left_out) == (None, limits)


def answer_of(connection: Connection, tables: list[str], *, is_left_out: bool) -> tuple[bool | None, object]:
    """Ask, and leave out what is behind shared tables or not."""
    nearest = SharedTables.nearest if is_left_out else lambda _: frozenset[bytes]()
    with patch.object(SharedTables, "nearest", nearest):
        answer = check(connection, tables)
    return answer.is_consistent, tuple((each.why, each.about) for each in answer.limits)


@pytest.mark.parametrize("is_left_out", [True, False])
def test_a_version_without_a_known_writer_contains_nothing_that_is_left_out(
    connection: Connection, is_left_out: bool
) -> None:
    """`b` was rolled back to a version that nobody reported. So `a` isn't shared, and what is unknown of it is said."""
    story = StoryProducer()
    story.commit("a@1", also=[Input(dataset=None, opaque="an RDD")], parent=None)
    story.commit("b@2", reads=["a@1"], parent=1)
    story.commit("b@1", kind=CommitKind.ROLLBACK, parent=2, replaced=UNKNOWN)
    story.commit("d@1", reads=["b@1"], parent=None)
    store(connection, story)
    limits = ((LimitReason.OPAQUE, "lake.db.a@1"), (LimitReason.UNKNOWN_WRITER, "lake.db.b@1"))
    assert answer_of(connection, ["a@1", "b@1"], is_left_out=is_left_out) == (None, limits)


@pytest.mark.parametrize("tables", [["b", "c"], ["c", "b"]])
def test_a_number_that_came_again_as_a_compaction_is_the_version_before(
    connection: Connection, tables: list[str]
) -> None:
    """`b` has the first `a@2`, `c` the other one, which has the rows of `a@1`: its writer is known, in either order."""
    story = StoryProducer()
    story.format = Format.PAIMON
    story.commit("a@1", parent=None)
    story.commit("a@2")
    story.commit("b@1", reads=["a@2"], parent=None, replaced=ALL)
    story.commit("a@1", kind=CommitKind.ROLLBACK, parent=None, replaced=UNKNOWN)
    story.commit("a@2", parent=1, kind=CommitKind.COMPACT)
    story.commit("c@1", reads=["a@2"], parent=None, replaced=ALL)
    store(connection, story)
    answer = check(connection, tables)
    assert (answer.is_consistent, answer.limits) == (False, ())
    versions = [each.table for _, rows in answer.rows[0].contained for each in rows]
    assert {each.label for each in versions} == {"lake.db.a@1", "lake.db.a@2"}
    assert all(each.made_at for each in versions)


@pytest.mark.parametrize("form", [Format.DELTA, Format.HUDI, Format.ICEBERG, Format.PAIMON])
@pytest.mark.parametrize("is_parent_known", [True, False])
def test_changes_within_which_a_parent_is_unknown(connection: Connection, form: Format, is_parent_known: bool) -> None:
    """`t` has read `a@2` too, which has another state of `x` than `u`. It finds commits within changes that nobody
    looked for, because what was made on them didn't say so: the answer was yes."""
    story = StoryProducer()
    story.format = form
    story.commit("x@1", parent=None)
    story.commit("x@2", parent=1)
    story.commit("a@1", parent=None)
    story.commit("a@2", parent=1, reads=["x@1"])
    story.commit("a@3", parent=2 if is_parent_known else None, reads=["x@2"])
    where = story.where({"table": "a", "branch": None})
    changes = Input(**where, mode=ReadMode.CHANGES, snapshot=3, since=RangeStart(snapshot=1))
    story.commit("t@1", parent=None, also=[changes])
    story.commit("u@1", parent=None, reads=["x@2"], replaced=ALL)
    store(connection, story)
    found = check(connection, ["t", "u"])
    assert found.is_consistent is (False if is_parent_known else None)
    missing = [(LimitReason.UNKNOWN_WRITER, "lake.db.a@3", "its parent is unknown")]
    assert [(each.why, each.about, each.detail) for each in found.limits] == ([] if is_parent_known else missing)


@pytest.mark.parametrize("is_first", [True, False])
def test_the_first_instant_of_a_table_of_hudi_is_made_on_none(connection: Connection, is_first: bool) -> None:
    """It finds tables of Hudi that nothing ever is known of, as their first number is a time and not 1."""
    story = StoryProducer()
    story.format = Format.HUDI
    story.commit("x@20261127084009881", parent=None)
    if not is_first:
        story.commit("b@20261127084010001", reads=["x@20261127084009881"], parent=None)
    for name in "bc":
        story.commit(f"{name}@20261127084018758", reads=["x@20261127084009881"], parent=None)
    store(connection, story)
    found = check(connection, ["b", "c"])
    assert found.is_consistent is (True if is_first else None)
    assert [each.detail for each in found.limits] == ([] if is_first else ["its parent is unknown"])


def test_what_a_stream_of_hudi_lacks_that_does_not_show_where_it_began(connection: Connection) -> None:
    """It finds advice that doesn't help: a stream that is begun anew with the same option doesn't show it again."""
    story = StoryProducer()
    story.format = Format.HUDI
    story.commit("x@20261127084009881", parent=None)
    where: dict[str, Any] = story.where({"table": "x", "branch": None}) | {
        "snapshot": 20261127084009881,
        "version": "20261127084010001",
    }
    first = Input(**where, mode=ReadMode.CHANGES, since=RangeStart(snapshot=-1))
    later = Input(**where, mode=ReadMode.CHANGES, since=RangeStart(version="20261126000000000"))
    story.commit("b@20261127084018758", also=[first], parent=None)
    story.commit("c@20261127084018758", also=[first], parent=None)
    story.commit("d@20261127084018758", also=[later], parent=None)
    store(connection, story)
    assert check(connection, ["b", "c"]).is_consistent is True
    found = check(connection, ["b", "d"])
    assert found.is_consistent is None
    assert any("hoodie.datasource.streaming.startOffset" in each.detail for each in found.limits)


@pytest.mark.parametrize("table_format", [Format.KAFKA, Format.PARQUET])
@pytest.mark.parametrize("is_written", [True, False])
def test_what_is_behind_a_table_without_snapshots_is_not_known(
    connection: Connection, table_format: Format, is_written: bool
) -> None:
    """It finds rows of `x@1` that come by way of a topic or files, and are taken for none. What nobody is known to
    write is where lineage begins."""
    story = StoryProducer()
    story.commit("x@1", parent=None)
    story.commit("x@2")
    between: dict[str, Any] = story.where({"table": "f", "branch": None}) | {"format": table_format}
    if is_written:
        made = Output(**between, made_from=(0,))
        story.emit(3, Committed, barrier=3, inputs=(story.source("x@1", {}),), outputs=(made,))
    read = Input(**between, version='{"0":4}' if table_format is Format.KAFKA else None, mode=ReadMode.STATE)
    story.minute = 3
    for name in "bd":
        story.commit(f"{name}@1", also=[read], parent=None, replaced=ALL)
    story.commit("c@1", reads=["x@2"], parent=None, replaced=ALL)
    store(connection, story)
    found = check(connection, ["b", "c"])
    assert found.is_consistent is (None if is_written else True)
    assert [each.about for each in found.limits] == (["lake.db.f"] if is_written else [])
    assert check(connection, ["b", "d"]).is_consistent is (True if table_format is Format.KAFKA else None)


@pytest.mark.parametrize("is_merged", [False, True])
def test_a_branch_has_what_main_had_when_it_was_made(connection: Connection, is_merged: bool) -> None:
    """It finds a number of main's that came again after a rollback, and is taken for the one that the branch has."""
    story = StoryProducer()
    story.format = Format.PAIMON
    story.commit("a@1", parent=None)
    story.commit("a@2", replaced=ALL)
    made = {"context": CONTEXT, "identifier": named("a"), "dataset": dataset("a"), "generation": "1"}
    story.emit(story.minute + 0.5, CreateBranch, **made, branch="side", snapshot=2)
    story.commit("a@1", kind=CommitKind.ROLLBACK, parent=None, replaced=UNKNOWN)
    story.commit("b@1", reads=["a[side]@2"], replaced=ALL)
    story.commit("a@2", replaced=ALL)
    story.commit("c@1", reads=["a@2"], replaced=ALL)
    story.commit("d@1", reads=["a[side]@2"], replaced=ALL)
    if is_merged:
        story.emit(story.minute + 0.5, BranchMerged, **made, branch="side", snapshot=2)
        story.commit("e@1", reads=["a@2"], replaced=ALL)
    store(connection, story)
    assert check(connection, ["b", "c"]).is_consistent is False
    assert check(connection, ["b", "d"]).is_consistent is True
    if is_merged:
        assert check(connection, ["c", "e"]).is_consistent is not True
