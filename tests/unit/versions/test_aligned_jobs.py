"""What aligned jobs decide without Spark: where they begin, which snapshots go together, what checkpoints hold."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from headwater.errors import ConfigurationError
from headwater.events import CreateBranch
from headwater.events.scalars import Format
from headwater.lineage.store import Store
from headwater.testing.examples import CONTEXT
from headwater.versions.aligned import AlignedBatch, CheckpointError, Cut, TableSnapshot, aligned_query
from headwater.versions.aligned.checkpoints import Barrier, Checkpoint, JobStart
from headwater.versions.aligned.loop import report_run
from headwater.versions.aligned.proposals import StoreAgreement
from headwater.versions.aligned.starts import contained_cut, start_positions
from tests.kit.lineage.all_stories import named
from tests.kit.lineage.scripted_producer import dataset
from tests.kit.lineage.scripted_producer import store as put
from tests.kit.lineage.stories import StoryProducer
from tests.kit.stores import open_new_store
from tests.kit.versions.two_jobs import ALL, two_jobs

CUT = Cut({"lake.db.a": TableSnapshot(20, "1")})


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_new_store(str(tmp_path / "store.db")) as opened:
        with opened.engine.begin() as connection:
            put(connection, two_jobs())
        yield opened


class _Looker:
    """Of whose tables only their snapshots and columns are asked for."""

    def source(self, _: str) -> Any:
        return self

    def at(self, snapshot: int) -> TableSnapshot:
        return TableSnapshot(snapshot, "1")

    def state(self, _: TableSnapshot) -> Any:
        return SimpleNamespace(columns=["product", "price", "v"])


def test_snapshots_that_dont_belong_together_become_the_newest_that_do(store: Store) -> None:
    """It finds a cut of two tables of which one has got farther: b@12 is made from a@21, and c@15 from a@20."""
    agreement = StoreAgreement(store)
    assert agreement.agreed({"lake.db.b": 12, "lake.db.c": 15}, {}) == {"lake.db.b": 11, "lake.db.c": 15}
    assert agreement.agreed({"lake.db.b": 11, "lake.db.c": 15}, {}) == {"lake.db.b": 11, "lake.db.c": 15}
    unknown = {"lake.db.b": 12, "lake.nobody.knows": 3}
    assert agreement.agreed(unknown, {}) == unknown


def test_a_snapshot_that_the_store_hasnt_heard_of_is_no_error(store: Store) -> None:
    """It finds a job that dies because a commit gets into the store later than the job has seen it. A table that known
    jobs write waits for that; one that is only read begins with any snapshot, as nobody will report who wrote it."""
    agreement = StoreAgreement(store)
    assert agreement.agreed({"lake.db.b": 13, "lake.db.c": 15}, {}) == {"lake.db.b": 11, "lake.db.c": 15}
    story = StoryProducer(9)
    story.commit("e@1", reads=["read1@5"], replaced=ALL)
    story.commit("f@1", reads=["read2@7"], replaced=ALL)
    with store.engine.begin() as connection:
        put(connection, story)
    unseen = {"lake.db.read1": 6, "lake.db.read2": 8}
    assert agreement.agreed(unseen, {}) == unseen
    assert agreement.agreed({"lake.db.read1": 6, "lake.db.e": 1}, {}) == {"lake.db.read1": 5, "lake.db.e": 1}


@pytest.mark.parametrize(
    ("name", "table_format"), [("lake.db.x.branch_test", Format.ICEBERG), ("lake.db.`x$branch_test`", Format.PAIMON)]
)
def test_a_source_that_is_a_branch_goes_with_what_belongs_to_it(store: Store, name: str, table_format: Format) -> None:
    """It finds a branch that is taken for a table which the store doesn't know, or for main. A snapshot that only main
    has is a version of the branch, until something is written to that."""
    story = StoryProducer(9)
    story.format = table_format
    for number in (1, 2):
        story.commit(f"s@{number}", parent=number - 1 or None)
    story.commit("x@1", reads=["s@1"], parent=None, replaced=ALL)
    story.commit("y@1", reads=["s@1"], parent=None, replaced=ALL)
    made = {"context": CONTEXT, "identifier": named("x"), "dataset": dataset("x"), "generation": "1"}
    story.emit(story.minute + 0.5, CreateBranch, **made, branch="test", snapshot=1)
    with store.engine.begin() as connection:
        put(connection, story)
    agreement = StoreAgreement(store)
    assert agreement.agreed({name: 1, "lake.db.y": 1}, {name: 1}) == {name: 1, "lake.db.y": 1}
    story.commit("x[test]@2", reads=["s@2"], parent=1, replaced=ALL)
    story.commit("x@3" if table_format is Format.ICEBERG else "x@2", reads=["s@1"], parent=1, replaced=ALL)
    with store.engine.begin() as connection:
        put(connection, story)
    assert agreement.agreed({name: 2, "lake.db.y": 1}, {name: 2}) == {name: 1, "lake.db.y": 1}
    story.commit("y@2", reads=["s@2"], parent=1, replaced=ALL)
    with store.engine.begin() as connection:
        put(connection, story)
    assert agreement.agreed({name: 2, "lake.db.y": 2}, {name: 2}) == {name: 2, "lake.db.y": 2}
    assert agreement.agreed({name: 1, "lake.db.y": 2}, {name: 2}) == {name: 2, "lake.db.y": 2}


def test_where_a_branch_is_begun_is_told_of_its_table(store: Store) -> None:
    """It finds a start at a table of the branch's name, which is none."""
    cut = Cut({"lake.db.a.branch_test": TableSnapshot(20, "1"), "lake.db.`a$branch_main`": TableSnapshot(21, "1")})
    found = start_positions(store, cut)
    assert {(each.table and each.table.table, each.branch, each.main, each.snapshot) for each in found} == {
        ("a", "test", False, 20),
        ("a", None, True, 21),
    }


def test_a_job_begins_after_what_a_table_contains(store: Store) -> None:
    """It finds a start at another snapshot than the one that the table was made from."""
    looker: Any = _Looker()
    assert contained_cut(looker, store, "lake.db.b@11", {"a": "lake.db.a"}) == CUT
    with pytest.raises(ConfigurationError, match="Begin at a data version"):
        contained_cut(looker, store, "lake.db.b@11", {"c": "lake.db.c"})


def test_where_a_run_begins_is_in_the_store(store: Store) -> None:
    """It finds a start that `job_startup` wouldn't show, or shows of a table that the store doesn't know."""
    with report_run(store, "revenue", start_positions(store, CUT)):
        pass
    with pytest.raises(ValueError, match="mine"), report_run(store, "broken", ()):
        raise ValueError("mine")
    with store.engine.connect() as connection:
        starts = connection.exec_driver_sql(
            "SELECT r.job, d.name, s.table_name, s.snapshot, s.reason FROM run_starts s JOIN runs r ON r.run = s.run "
            "JOIN datasets d ON d.id = s.dataset"
        ).all()
        statement = "SELECT job, status FROM runs WHERE job IN ('revenue', 'broken')"
        ends = {tuple(row) for row in connection.exec_driver_sql(statement)}
    assert starts == [("revenue", "w/a", "a", 20, "ALIGNED")]
    assert ends == {("revenue", "FINISHED"), ("broken", "FAILED")}


def test_a_checkpoint_holds_the_start_and_the_newest_barrier(tmp_path: Path) -> None:
    checkpoint = Checkpoint(f"file://{tmp_path}/checkpoint")
    assert checkpoint.start() is None
    assert checkpoint.newest() is None
    start = JobStart("revenue", "shop", {"orders": "lake.db.a"}, 3, CUT, "lake.db.b@11", "one")
    checkpoint.write_start(start)
    for number in (9, 10):
        checkpoint.write(Barrier(number, CUT, None, is_committed=False, sinks={"sink 1": 5, "new 1": None}).commit())
    checkpoint.write(Barrier(11, CUT, CUT, is_committed=False, sinks={"sink 1": 6}))
    assert checkpoint.start() == start
    assert checkpoint.newest() == Barrier(11, CUT, CUT, is_committed=False, sinks={"sink 1": 6})
    assert not list(tmp_path.rglob("*.part"))


def test_a_checkpoint_that_isnt_whole_says_so(tmp_path: Path) -> None:
    """It finds half a file that passes as none: the job would begin anew."""
    checkpoint = Checkpoint(str(tmp_path))
    checkpoint.write(Barrier(1, CUT, None, is_committed=True))
    [file] = (tmp_path / "barriers").iterdir()
    file.write_text(file.read_text()[:40])
    with pytest.raises(CheckpointError, match="isn't whole"):
        checkpoint.newest()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"sources": {}}, "needs sources"),
        ({"overwrites": "never"}, "overwrites can be fail, full, ignore"),
        ({"snapshots_per_barrier": 0}, "has to be 1 or more"),
        ({"name": " "}, "a job can't be called"),
        ({"checkpoint": "s3://bucket/checkpoint"}, "a directory that this machine has mounted"),
    ],
)
def test_what_is_wrong_is_said_at_once(tmp_path: Path, given: dict[str, Any], message: str) -> None:
    arguments: dict[str, Any] = {"sources": {"a": "lake.db.a"}, "name": "revenue", "checkpoint": str(tmp_path), **given}
    with pytest.raises(ConfigurationError, match=message):
        aligned_query("shop", **arguments)


@pytest.mark.parametrize(
    ("source", "given", "message"),
    [
        (
            "lake.db.p",
            {},
            r"no source 'lake.db.p': lake.db.p is the table of 'products': this job's are orders, products",
        ),
        ("customers", {}, r"no source 'customers': .* Name another table as one in sources="),
        ("products", {"on": "code"}, r"the rows have no column 'code', but id, product"),
        ("products", {"on": "id"}, r"products has no column 'id', but product, price, v"),
        ("products", {"columns": ["prize"]}, r"products has no column 'prize', but product, price, v"),
        ("products", {"on": []}, r"needs the columns to join on"),
        ("products", {"how": "outer"}, r"joins 'inner' or 'left', and not 'outer'"),
        ("products", {"rows": ["id", "product", "v"]}, r"the rows have a column 'v', and so has products"),
    ],
)
def test_what_is_wrong_with_a_lookup_is_said_at_once(source: str, given: dict[str, Any], message: str) -> None:
    """It finds errors that Spark would tell of names that the user has never written, or only as it executes."""
    rows = SimpleNamespace(columns=given.pop("rows", ["id", "product"]))
    batch = AlignedBatch(
        cast("Any", None),
        cast("Any", _Looker()),
        number=1,
        cut=Cut({name: TableSnapshot(1, "1") for name in ("lake.db.o", "lake.db.p")}),
        before=None,
        tables={"orders": "lake.db.o", "products": "lake.db.p"},
        overwrites={},
        sinks=cast("Any", None),
    )
    with pytest.raises(ConfigurationError, match=message):
        batch.lookup(source, cast("Any", rows), **cast("Any", {"on": "product", **given}))
