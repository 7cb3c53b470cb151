"""What a validation pins, redirects, copies and compares, in stories whose answers were found by hand."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import Connection

from headwater.errors import ConfigurationError
from headwater.events import CatalogOptionsDeclared, CreateTable, Table, TableName
from headwater.events.administration import LineageDeleted, LineageScope
from headwater.events.catalog import CatalogContext
from headwater.events.jobs import CommitKind, Committed, Input, Output, OverwriteScope, RangeStart, ReadMode
from headwater.events.names import DatasetId, JobName
from headwater.events.scalars import Format
from headwater.lineage.maintenance.deletion import expire_before
from headwater.testing.examples import CONTEXT
from headwater.versions.validation.model import ComparedRows, ResultStart, UnvalidatableError, ValidationPlan
from headwater.versions.validation.planning import plan_validation
from tests.kit.lineage.scripted_producer import at, dataset, place, store
from tests.kit.lineage.stories import StoryProducer

named = TableName(catalog="lake", database="db", table="b")
ALL, PART = OverwriteScope.ALL, OverwriteScope.PART


def pins(plan: ValidationPlan) -> dict[str, str]:
    return {each.table: each.snapshot for each in plan.inputs}


def problems(connection: Connection, sink: str, **more: object) -> str:
    with pytest.raises(UnvalidatableError) as raised:
        plan_validation(connection, sink, **more)  # type: ignore[arg-type]
    return str(raised.value)


def test_an_append_is_compared_by_what_it_added(connection: Connection) -> None:
    story = StoryProducer()
    story.commit("b@8", reads=["a@20", "d@3"], job="B")
    store(connection, story)
    plan = plan_validation(connection, "b@8")
    assert pins(plan) == {"lake.db.a": "20", "lake.db.d": "3"}
    assert plan.inputs[0].names == ("lake.db.a", "s3://lake/w/a", "s3a://lake/w/a", "s3n://lake/w/a")
    assert (plan.sink.table, plan.sink.start, plan.rows) == ("lake.db.b", ResultStart.EMPTY, ComparedRows.ADDED)
    assert plan.sink.commits == ((7, 8),)
    assert plan.job == "B"


@pytest.mark.parametrize(
    ("kind", "replaced", "start"),
    [
        (CommitKind.OVERWRITE, ALL, ResultStart.EMPTY),
        (CommitKind.OVERWRITE, PART, ResultStart.COPY),
        (CommitKind.MERGE, PART, ResultStart.COPY),
        (CommitKind.DELETE, OverwriteScope.UNKNOWN, ResultStart.COPY),
    ],
)
def test_what_changes_rows_is_compared_whole_and_begins_with_what_was_there(
    connection: Connection, kind: CommitKind, replaced: OverwriteScope, start: ResultStart
) -> None:
    story = StoryProducer()
    story.commit("b@8", reads=["a@20"], kind=kind, replaced=replaced)
    store(connection, story)
    plan = plan_validation(connection, "b@8")
    assert (plan.sink.start, plan.rows, plan.sink.before) == (start, ComparedRows.ALL, 7)


def test_a_job_that_reads_its_sink_begins_with_what_it_read(connection: Connection) -> None:
    """The sink isn't pinned: a second statement of the job has to see what the first one wrote."""
    story = StoryProducer()
    story.commit("b@8", reads=["a@20", "b@7"])
    store(connection, story)
    plan = plan_validation(connection, "b@8")
    assert pins(plan) == {"lake.db.a": "20"}
    assert (plan.sink.start, plan.rows) == (ResultStart.COPY, ComparedRows.ALL)


def test_a_table_that_is_read_after_rows_were_added_begins_with_what_was_there(connection: Connection) -> None:
    """Fails if the second statement of the job sees only the rows that the first one added."""
    story = StoryProducer()
    story.commit("between@4", reads=["a@20"])
    story.commit("b@8", reads=["between@4"])
    store(connection, story)
    plan = plan_validation(connection, "b@8")
    assert {each.table: each.start for each in plan.outputs} == {
        "lake.db.between": ResultStart.COPY,
        "lake.db.b": ResultStart.EMPTY,
    }
    plan = plan_validation(connection, "b@8", copies=True)
    assert (plan.sink.start, plan.rows) == (ResultStart.COPY, ComparedRows.ALL)


def test_tables_between_are_made_again_and_not_pinned(connection: Connection) -> None:
    story = StoryProducer()
    story.commit("between@4", reads=["a@20"], replaced=ALL)
    story.commit("b@8", reads=["between@4"], replaced=ALL)
    store(connection, story)
    plan = plan_validation(connection, "b@8")
    assert pins(plan) == {"lake.db.a": "20"}
    assert {each.table: each.start for each in plan.outputs} == {
        "lake.db.between": ResultStart.EMPTY,
        "lake.db.b": ResultStart.EMPTY,
    }


def test_a_table_that_the_job_makes_is_absent(connection: Connection) -> None:
    story = StoryProducer()
    made = {"context": CONTEXT, "identifier": named, "dataset": dataset("b"), "generation": "1"}
    story.emit(1, CreateTable, **made, table=Table(), produced=0)
    story.commit("b@1", reads=["a@20"], minute=1)
    store(connection, story)
    plan = plan_validation(connection, "b@1")
    assert (plan.sink.start, plan.rows) == (ResultStart.ABSENT, ComparedRows.ALL)


def test_a_table_that_was_there_is_not_made_by_the_job(connection: Connection) -> None:
    """Fails if `saveAsTable`, which Spark plans as the making of a table, lets a result begin absent, although it
    replaced a part of a table that was there."""
    story = StoryProducer()
    story.emit(1, CreateTable, context=CONTEXT, identifier=named, dataset=dataset("b"), table=Table(), as_select=True)
    story.commit("b@8", reads=["a@20"], minute=1, kind=CommitKind.OVERWRITE, replaced=PART)
    store(connection, story)
    plan = plan_validation(connection, "b@8")
    assert (plan.sink.start, plan.sink.before, plan.rows) == (ResultStart.COPY, 7, ComparedRows.ALL)


def test_all_that_stands_in_the_way_is_named_at_once(connection: Connection) -> None:
    story = StoryProducer()
    formats = {"files": Format.PARQUET, "topic": Format.KAFKA, "e": Format.ICEBERG}
    story.commit("b@8", reads=["files", "topic", "c@1..4", "d", "e[test]@5", "a@20"], formats=formats)
    store(connection, story)
    text = problems(connection, "b@8")
    for words in (
        "lake.db.b@8 can't be validated:",
        "lake.db.files can't be pinned: no lens pins what is read from PARQUET",
        "lake.db.topic can't be pinned: which snapshot was read isn't known",
        "lake.db.c can't be pinned: the job read changes of it",
        "lake.db.d can't be pinned: which snapshot was read isn't known",
        "lake.db.e can't be pinned: it was read on the branch test, which may have moved",
        "; pin it by --pin lake.db.e.branch_test@5; name it by --allow",
    ):
        assert words in text
    assert "lake.db.a " not in text
    given = ["lake.db.files", "lake.db.topic", "lake.db.c", "lake.db.e"]
    plan = plan_validation(connection, "b@8", allowed=given, pins={"lake.db.d": "6"})
    assert pins(plan) == {"lake.db.a": "20", "lake.db.d": "6"}
    chosen = {"lake.db.d": "6", "lake.db.e.branch_test": "5"}
    assert pins(plan_validation(connection, "b@8", allowed=given[:3], pins=chosen)) == {"lake.db.a": "20", **chosen}


def test_an_input_that_is_read_otherwise_than_recorded_is_noted(connection: Connection) -> None:
    """Else rows that differ are put down to the job."""
    story = StoryProducer()
    story.commit("b@8", reads=["a@20", "c@3", "d@4"])
    store(connection, story)
    plan = plan_validation(connection, "b@8", pins={"lake.db.a": "21", "lake.db.d": "4"}, allowed=["lake.db.c"])
    assert sorted(plan.notes) == [
        "lake.db.a was read at 20 when the snapshot was made, and is read at 21 now, as it is pinned",
        "lake.db.c was read at 3 when the snapshot was made, and is read as it is now, as that is allowed",
    ]


def test_a_pin_that_no_input_uses_is_said_and_is_no_input(connection: Connection) -> None:
    """Else it stands among what the job reads, as if it had been read."""
    story = StoryProducer()
    story.commit("b@8", reads=["a@20"])
    store(connection, story)
    chosen = {"lake.db.a": "21", "lake.db.q": "1", "lake.db.b": "7"}
    plan = plan_validation(connection, "b@8", pins=chosen)
    assert pins(plan) == chosen, "the changed job may read them"
    assert [each.table for each in plan.inputs if each.is_recorded] == ["lake.db.a"]
    assert [each for each in plan.notes if "is pinned to" in each] == [
        "lake.db.q is pinned to 1, which the recorded job didn't read: that counts only if the job reads it now",
        "lake.db.b is pinned to 7, which the job writes: it reads it at that version, and not what it has written",
    ]


@pytest.mark.parametrize(("name", "full"), [("a", r"lake\.db\.a"), ("db.a", r"lake\.db\.a"), ("nix", r"catalog\.name")])
def test_a_pin_needs_a_full_name(connection: Connection, name: str, full: str) -> None:
    """A short one is looked for in whichever namespace the job uses, and lineage's own pin stays beside it."""
    story = StoryProducer()
    story.commit("b@8", reads=["a@20"])
    store(connection, story)
    with pytest.raises(ConfigurationError, match=f"{name}@20 can't be pinned by that name: .* in full, as {full}"):
        plan_validation(connection, "b@8", pins={name: "20"})


def topic(name: str, version: str | None, since: str | None = None) -> Input:
    where = DatasetId(namespace="kafka://events", name=name)
    if since is None:
        return Input(dataset=where, format=Format.KAFKA, version=version)
    return Input(
        dataset=where, format=Format.KAFKA, version=version, since=RangeStart(version=since), mode=ReadMode.CHANGES
    )


def test_topics_are_pinned_to_their_offsets(connection: Connection) -> None:
    """Fails if a topic is read further than the job did, or from another start where it read a range."""
    story = StoryProducer()
    whole, part = topic("orders", '{"0":42,"1":17}'), topic("clicks", '{"0":9,"1":4}', '{"0":5,"1":4}')
    story.commit("b@8", reads=["a@20"], also=[whole, part])
    story.commit("c@2", reads=["a@20"], also=[topic("orders", None)], run=7)
    store(connection, story)
    plan = plan_validation(connection, "b@8")
    ranges = '{"0":[5,9],"1":[4,4]}'
    assert pins(plan) == {
        "lake.db.a": "20",
        "kafka://events/orders": '{"0":42,"1":17}',
        "kafka://events/clicks": ranges,
    }
    assert next(each for each in plan.inputs if each.snapshot == ranges).names == ("kafka://events/clicks",)
    assert "kafka://events/orders can't be pinned: which snapshot was read isn't known" in problems(connection, "c@2")
    chosen = {"kafka://events/orders": '{"0":40,"1":17}'}
    assert pins(plan_validation(connection, "c@2", pins=chosen)) == {"lake.db.a": "20", **chosen}


def test_tables_of_hudi_are_pinned_and_redirected_by_their_names(connection: Connection) -> None:
    """No lens pins one by its path. Fails if that is seen only when the job reads it."""
    story = StoryProducer()
    story.commit("b@8", reads=["h@3"], formats={"h": Format.HUDI})
    by_path = Input(dataset=dataset("p"), format=Format.HUDI, snapshot=4)
    story.commit("c@2", reads=["a@20"], also=[by_path], run=7)
    story.format = Format.HUDI
    story.commit("x@2", reads=["a@20"], run=8, formats={"a": Format.DELTA})
    store(connection, story)
    assert pins(plan_validation(connection, "b@8")) == {"lake.db.h": "3"}
    sink = plan_validation(connection, "x@2").sink
    assert (sink.table, sink.format, sink.commits) == ("lake.db.x", "HUDI", ((1, 2),))
    said = "can't be pinned: no lens pins what is read from the path of a table of Hudi; name it by --allow"
    assert said in problems(connection, "c@2")


def test_a_table_that_hudi_makes_of_a_query_is_absent_before(connection: Connection) -> None:
    """Hive's metastore isn't told by Spark. Fails if the script's own CREATE TABLE would find a table."""
    story = StoryProducer()
    story.format = Format.HUDI
    story.commit("x@2", reads=["a@20"], kind=CommitKind.CREATE, replaced=ALL, parent=None)
    story.commit("y@2", reads=["a@20"], run=7, parent=None)
    store(connection, story)
    starts = [plan_validation(connection, each).sink.start for each in ("x@2", "y@2")]
    assert starts == [ResultStart.ABSENT, ResultStart.EMPTY]


def test_what_isnt_known_is_no_input(connection: Connection) -> None:
    """What Spark doesn't show, unless the caller accepts it."""
    story = StoryProducer()
    story.commit("b@8", reads=["a@20"], opaque="an RDD")
    store(connection, story)
    assert "the job read an RDD" in problems(connection, "b@8")
    plan = plan_validation(connection, "b@8", anyway=True)
    assert plan.notes == ("the job read an RDD, of which Spark shows no table or version",)


def test_snapshots_without_a_job_are_refused(connection: Connection) -> None:
    story = StoryProducer()
    story.commit("b@8", reads=["a@20"])
    store(connection, story)
    assert "nobody reported who wrote it" in problems(connection, "b@7")
    for wrong in ("b", "b@8.column"):
        with pytest.raises(ConfigurationError, match="which snapshot"):
            plan_validation(connection, wrong)
    deleted = StoryProducer(2)
    draft = expire_before(at(8), by="me")
    deleted.emit(9, LineageDeleted, **{name: getattr(draft, name) for name in ("scope", "before")})
    store(connection, deleted)
    assert "was deleted or has expired" in problems(connection, "b@8")


def of_another_catalog(name: str) -> dict[str, Any]:
    return {"dataset": dataset(name), "table": TableName(catalog="raw", database="db", table=name)}


def declare(*, minute: float, number: int = 9) -> StoryProducer:
    """The catalog `raw`, whose versions aren't to be shown."""
    story = StoryProducer(number)
    context = CatalogContext(name="raw", class_name="org.example.Catalog")
    story.emit(minute, CatalogOptionsDeclared, context=context, data_lineage=False)
    return story


def delete(**what: Any) -> StoryProducer:
    story = StoryProducer(9)
    story.emit(90, LineageDeleted, before=at(80), **what)
    return story


def hides_a(how: str) -> StoryProducer:
    if how == "switch":
        return declare(minute=-1)
    narrower = {"up_to_snapshot": 20} if how == "expired" else {}
    return delete(scope=LineageScope.DATA, dataset=dataset("a"), **narrower)


HIDDEN = {
    "switch": "what was read of it is switched off by an option of its catalog",
    "deleted": "what was read of it was deleted or has expired",
    "expired": "what was read of it was deleted or has expired",
}


@pytest.mark.parametrize("how", HIDDEN)
def test_an_input_that_isnt_shown_isnt_pinned(connection: Connection, how: str) -> None:
    """Fails if a version is read that a deletion or an option of its catalog hides, so that the verdict could be equal.
    Who names a version himself is told of it, and not which one was read."""
    story = StoryProducer()
    story.commit("b@8", reads=["d@3"], also=[Input(**of_another_catalog("a"), format=Format.DELTA, snapshot=20)])
    store(connection, story)
    assert pins(plan_validation(connection, "b@8")) == {"lake.db.d": "3", "raw.db.a": "20"}
    store(connection, hides_a(how))
    said = problems(connection, "b@8", anyway=True)
    assert f"raw.db.a can't be pinned: {HIDDEN[how]}; choose a version by --pin TABLE@SNAPSHOT" in said
    assert "20" not in said
    plan = plan_validation(connection, "b@8", pins={"raw.db.a": "19"})
    now = "it is read at 19 now, as it is pinned"
    assert plan.notes == (f"of raw.db.a it isn't shown at which version it was read, as {HIDDEN[how]}: {now}",)
    assert "as that is allowed" in plan_validation(connection, "b@8", allowed=["raw.db.a"]).notes[0]


def test_a_deletion_of_something_else_hides_no_input(connection: Connection) -> None:
    story = StoryProducer()
    story.commit("b@8", reads=["a@20"], run=7)
    store(connection, story)
    others: list[dict[str, Any]] = [{"dataset": dataset("other")}, {"of_run": UUID(int=8)}]
    for number, what in enumerate([*others, {"of_job": JobName(name="x")}]):
        deleted = StoryProducer(20 + number)
        deleted.emit(90, LineageDeleted, scope=LineageScope.ALL, before=at(80), **what)
        store(connection, deleted)
    assert pins(plan_validation(connection, "b@8")) == {"lake.db.a": "20"}


def test_a_table_that_isnt_shown_isnt_redirected(connection: Connection) -> None:
    """The job writes two tables. Fails if the one is made again whose versions are switched off."""
    story = StoryProducer()
    story.commit("b@8", reads=["a@20"])
    made: dict[str, Any] = {
        "snapshot": 2,
        "parent": 1,
        "commit_kind": CommitKind.APPEND,
        "replaced": OverwriteScope.NOTHING,
    }
    outputs = (Output(**of_another_catalog("x"), format=Format.DELTA, **made),)
    story.emit(2, Committed, barrier=2, outputs=outputs)
    store(connection, story)
    assert {each.table for each in plan_validation(connection, "b@8").outputs} == {"lake.db.b", "raw.db.x"}
    store(connection, declare(minute=-1))
    said = "raw.db.x can't be redirected: what was written to it is switched off by an option of its catalog"
    assert said in problems(connection, "b@8", allowed=["raw.db.x"])


def test_the_last_snapshot_of_the_job_is_the_one_to_validate(connection: Connection) -> None:
    story = StoryProducer()
    story.commit("b@8", reads=["a@20"])
    story.commit("b@9", reads=["a@20"])
    store(connection, story)
    assert "validate lake.db.b@9, its last snapshot" in problems(connection, "b@8")
    assert plan_validation(connection, "b@9").sink.commits == ((7, 8), (8, 9))


def test_a_compaction_after_it_changes_nothing(connection: Connection) -> None:
    story = StoryProducer()
    story.commit("b@8", reads=["a@20"])
    story.commit("b@9", kind=CommitKind.COMPACT)
    store(connection, story)
    assert plan_validation(connection, "b@8").sink.commits == ((7, 8),)
    assert plan_validation(connection, "b@9").snapshot == 9


def test_a_table_that_was_read_at_two_snapshots_has_to_be_chosen(connection: Connection) -> None:
    story = StoryProducer()
    story.commit("b@8", reads=["a@20", "a@21"])
    store(connection, story)
    assert "it was read at 20 and at 21" in problems(connection, "b@8")
    story = StoryProducer(2)
    story.commit("x@3", reads=["a@20"], minute=3)
    story.commit("y@3", reads=["a@21"], minute=4)
    store(connection, story)
    plan = plan_validation(connection, "y@3")
    assert pins(plan) == {"lake.db.a": "21"}
    assert plan.notes == ("another statement of the job read lake.db.a at 20, and reads it at 21 now",)


def test_others_that_wrote_between_spoil_a_comparison_of_all_rows(connection: Connection) -> None:
    story, other = StoryProducer(), StoryProducer(2)
    story.commit("b@8", reads=["a@20"], kind=CommitKind.MERGE, replaced=PART)
    other.commit("b@9")
    story.commit("b@10", reads=["a@20"], kind=CommitKind.MERGE, replaced=PART)
    store(connection, story, other)
    assert "another job wrote lake.db.b between its snapshots 8 and 10" in problems(connection, "b@10")


def test_a_compaction_of_the_job_hides_no_other_job(connection: Connection) -> None:
    """Fails if a commit of the job that keeps all rows passes for the one before it, although it stands on another's
    rows: between two commits that change rows, and behind the last of them."""
    story, other = StoryProducer(), StoryProducer(2)
    merge: dict[str, Any] = {"kind": CommitKind.MERGE, "replaced": PART}
    story.commit("b@8", reads=["a@20"], **merge)
    story.commit("b@9", kind=CommitKind.COMPACT)
    story.commit("b@10", reads=["a@20"], **merge)
    story.commit("x@2", reads=["a@20"], run=7, minute=8, **merge)
    other.commit("x@3")
    story.commit("x@4", kind=CommitKind.COMPACT, run=7, minute=10)
    other.commit("b@11")
    story.commit("b@12", kind=CommitKind.COMPACT)
    story.commit("b@13", reads=["a@20"], **merge)
    store(connection, story, other)
    assert "between its snapshots 10 and 13" in problems(connection, "b@13")
    assert "between its snapshots 2 and 4" in problems(connection, "x@4")
    assert "between its snapshots 8" not in problems(connection, "b@13")


def read(table: str, snapshot: int, since: Any) -> Input:
    return Input(**place(table, format=Format.PAIMON), mode=ReadMode.CHANGES, snapshot=snapshot, since=since)


def stream_of_words(first_since: int | None) -> StoryProducer:
    """A stream of two sources, of which the second had nothing new in its last batches, and a stranger's stream."""
    story = StoryProducer()
    began = first_since and {"snapshot": first_since}
    reads = (
        [read("words", 3, began), read("dictionary", 7, None)],
        [read("words", 5, {"snapshot": 3})],
        [read("words", 6, {"snapshot": 5})],
    )
    for batch, inputs in enumerate(reads):
        made: dict[str, Any] = {
            "snapshot": 6 + batch,
            "parent": 5 + batch,
            "replaced": ALL,
            "commit_kind": CommitKind.OVERWRITE,
        }
        outputs = (Output(**place("b", format=Format.PAIMON), **made),)
        stream = {"incarnation": UUID(int=9), "batch_id": batch, "job": JobName(name="count")}
        story.emit(batch, Committed, barrier=batch, inputs=tuple(inputs), outputs=outputs, **stream)
    other = {"incarnation": UUID(int=8), "batch_id": 0, "job": JobName(name="other")}
    later = read("words", 99, {"snapshot": 6})
    story.emit(4, Committed, barrier=0, inputs=(later,), outputs=(Output(**place("c"), snapshot=1),), **other)
    return story


def test_a_streams_snapshot_is_made_again_from_its_sources_as_far_as_it_had_read(connection: Connection) -> None:
    """PIP-5's own example: snapshot 5 of the words made snapshot 7 of the counts, by whatever batches."""
    store(connection, stream_of_words(None))
    plan = plan_validation(connection, "b@7")
    assert pins(plan) == {"lake.sales.words": "5", "lake.sales.dictionary": "7"}
    assert (plan.sink.start, plan.rows, len(plan.outputs)) == (ResultStart.EMPTY, ComparedRows.ALL, 1)
    assert plan.notes == ("a stream made it: the job is run as one batch, and all rows are compared",)
    assert plan.job == "count"


def test_a_stream_that_began_later_is_said(connection: Connection) -> None:
    store(connection, stream_of_words(2))
    assert "the stream began behind the first snapshot of a source" in plan_validation(connection, "b@7").notes[0]


@pytest.mark.parametrize("table", ["words", "dictionary"])
def test_a_streams_source_that_isnt_shown_isnt_pinned(connection: Connection, table: str) -> None:
    """The dictionary was read in the first batch alone. Fails if hidden reads of any batch count."""
    store(connection, stream_of_words(None), delete(scope=LineageScope.DATA, dataset=dataset(table)))
    said = f"lake.sales.{table} can't be pinned: what was read of it was deleted or has expired"
    assert said in problems(connection, "b@7")


def stream_of_clicks(first: int) -> StoryProducer:
    """A stream of a topic, whose batches before one were lost."""
    story = StoryProducer()
    for batch in range(first, 4):
        made: dict[str, Any] = {"snapshot": 6 + batch, "parent": 5 + batch, "commit_kind": CommitKind.APPEND}
        outputs = (Output(**place("b", format=Format.PAIMON), **made),)
        stream = {"incarnation": UUID(int=9), "batch_id": batch, "job": JobName(name="count")}
        clicks = (topic("clicks", f'{{"0":{batch + 1}}}', f'{{"0":{batch}}}'),)
        story.emit(batch, Committed, barrier=batch, inputs=clicks, outputs=outputs, **stream)
    return story


def test_a_streams_topic_that_isnt_shown_isnt_pinned(connection: Connection) -> None:
    store(connection, stream_of_clicks(0))
    assert pins(plan_validation(connection, "b@9")) == {"kafka://events/clicks": '{"0":[0,4]}'}
    store(
        connection, delete(scope=LineageScope.DATA, of_job=JobName(name="count"), dataset=topic("clicks", None).dataset)
    )
    assert "clicks can't be pinned: what was read of it was deleted" in problems(connection, "b@9")


def test_a_stream_whose_first_batch_isnt_known_is_doubted(connection: Connection) -> None:
    """Fails if a topic is read from where the first batch began that is left: the rows before count as missing then."""
    store(connection, stream_of_clicks(2))
    assert "the stream's batches before 2 aren't known, and so not where it began" in problems(connection, "b@9")
    assert pins(plan_validation(connection, "b@9", anyway=True)) == {"kafka://events/clicks": '{"0":[2,4]}'}
