"""The stories. What they expect was found by hand, from what happened."""

from __future__ import annotations

from headwater.events.administration import DatasetsUnified, LineageDeleted, LineageScope
from headwater.events.catalog import (
    AlterTable,
    AlterView,
    BranchMerged,
    CreateBranch,
    CreateTable,
    CreateView,
    DropTable,
    DropView,
)
from headwater.events.changes import AddColumn, RenameTable
from headwater.events.column_lineage import ColumnLineage
from headwater.events.jobs import JobStatus, JobStatusChanged, LineageRetention
from headwater.events.names import TableName
from headwater.events.scalars import Format
from headwater.events.tables import Table, View, ViewSource
from headwater.testing.examples import CONTEXT
from tests.kit.lineage.scripted_producer import at, dataset
from tests.kit.lineage.stories import ALL, PART, UNKNOWN, CommitKind, Derivation, Story, StoryProducer


def named(name: str) -> TableName:
    return TableName(catalog="lake", database="db", table=name)


def diamond(s: StoryProducer) -> None:
    s.commit("b@1", reads=["a@1"])
    s.commit("c@1", reads=["a@1"])
    s.commit("d@1", reads=["b@1", "c@1"])
    s.expect("up d@1 depth=1", "1: d@1 <- b@1", "1: d@1 <- c@1")
    everything = ("1: d@1 <- b@1", "1: d@1 <- c@1", "2: b@1 <- a@1", "2: c@1 <- a@1")
    s.expect("up d@1", *everything, why=["UNKNOWN_WRITER"])
    s.expect("up d", *everything, why=["UNKNOWN_WRITER"])
    s.expect("down a@1", "1: b@1 <- a@1", "1: c@1 <- a@1", "2: d@1 <- b@1", "2: d@1 <- c@1", why=["UNKNOWN_WRITER"])
    s.expect("tables up d", "1: d <- b", "1: d <- c", "2: b <- a", "2: c <- a")
    s.expect("tables down a depth=1", "1: b <- a", "1: c <- a")
    s.expect("path a->d", "1: b <- a", "2: d <- b")
    s.expect("path d->a")


def cycle(s: StoryProducer) -> None:
    s.commit("b@1", reads=["a@1"])
    s.commit("a@2", reads=["b@1"])
    s.commit("b@2", reads=["a@2"])
    s.commit("c@1", reads=["b@2"])
    s.expect("tables up c", "1: c <- b", "2: b <- a (cycle)", "3: a <- b (cycle)")
    s.expect("tables down c")
    s.expect("tables down a", "1: b <- a (cycle)", "2: a <- b (cycle)", "2: c <- b")
    chain = ("1: c@1 <- b@2", "2: b@2 <- a@2", "3: a@2 <- b@1", "4: b@1 <- a@1")
    s.expect("up c@1", *chain, why=["UNKNOWN_WRITER"])


def self_insert(s: StoryProducer) -> None:
    s.commit("t@1", reads=["s@4"])
    s.commit("t@2", reads=["t@1"])
    s.commit("t@3", reads=["t@2"])
    s.expect("tables up t", "1: t <- s", "1: t <- t (cycle)")
    s.expect("up t@3", "1: t@3 <- t@2", "2: t@2 <- t@1", "3: t@1 <- s@4", why=["UNKNOWN_WRITER"])
    s.expect("state t@3", "1: t@2..3 <- t@1..2", "1: t@1 <- s@4", why=["UNKNOWN_WRITER"])
    s.expect("down s@4", "1: t@1 <- s@4", "2: t@2 <- t@1", "3: t@3 <- t@2", why=["UNKNOWN_WRITER"])


def merges(s: StoryProducer) -> None:
    """A MERGE reads its target and its source; the state goes on from the insert that came before."""
    s.commit("t@1", reads=["raw@1"], replaced=ALL, kind=CommitKind.CREATE)
    s.commit("t@2", reads=["t@1", "delta@7"], replaced=PART, kind=CommitKind.MERGE)
    s.commit("t@3", reads=["t@2", "delta@8"], replaced=PART, kind=CommitKind.MERGE)
    s.commit("t@4", reads=["t@3"], replaced=PART, kind=CommitKind.DELETE)
    s.expect("up t@4 depth=1", "1: t@4 <- t@3")
    s.expect("state t@4 depth=1", "1: t@2..4 <- t@1..3", "1: t@2..3 <- delta@7..8", "1: t@1 <- raw@1")
    s.expect("state t@2 depth=1", "1: t@2 <- t@1", "1: t@2 <- delta@7", "1: t@1 <- raw@1")


def restarts(s: StoryProducer) -> None:
    """Nothing from before a full overwrite is in the table."""
    s.commit("t@0", reads=["old@1"], replaced=ALL, kind=CommitKind.CREATE)
    s.commit("t@1", reads=["older@1"], parent=0)
    s.commit("t@2", reads=["src@5"], replaced=ALL, kind=CommitKind.OVERWRITE)
    s.commit("t@3", reads=["src@6"])
    s.expect("up state t@3 depth=1", "1: t@3 <- src@6", "1: t@2 <- src@5")
    s.expect("state t@3 depth=1", "1: t@2..3 <- src@5..6")
    s.expect("up t@3 depth=1", "1: t@3 <- src@6")
    s.expect("state t@1 depth=1", "1: t@0 <- old@1", "1: t@1 <- older@1")
    s.commit("u@1", reads=["t@3"])
    s.expect("down state src@5", "1: t@2 <- src@5", "2: u@1 <- t@3", why=["UNKNOWN_WRITER"])
    s.expect("down src@5", "1: t@2 <- src@5", why=["UNKNOWN_WRITER"])
    s.expect("down state old@1", "1: t@0 <- old@1", why=["UNKNOWN_WRITER"])


def streams(s: StoryProducer) -> None:
    """Changes of two sources: what is in a range is what came behind its beginning."""
    for number in range(1, 9):
        s.commit(f"a@{number}", reads=[f"raw@{number}"])
    s.commit("b@1", reads=["a@0..3", "x@1"])
    s.commit("b@2", reads=["a@3..7", "x@1"])
    s.commit("b@3", reads=["a@7..8", "x@2"])
    whole = ["UNKNOWN_WRITER"]
    s.expect("down a@7 depth=1", "1: b@2 <- a@3..7")
    s.expect("down a@5 depth=1", "1: b@2 <- a@3..7")
    s.expect("down a@3 depth=1", "1: b@1 <- a@0..3")
    s.expect("down a@8 depth=1", "1: b@3 <- a@7..8")
    s.expect("down raw@5", "1: a@5 <- raw@5", "2: b@2 <- a@3..7", why=whole)
    behind = {f"2: a@{n} <- raw@{n}" for n in (4, 5, 6, 7)}
    s.expect("up b@2", "1: b@2 <- a@3..7", "1: b@2 <- x@1", *behind, why=whole)
    s.expect("state b@3 depth=1", "1: b@1..3 <- a@(0..8]", "1: b@1..3 <- x@1..2")


def renamed(s: StoryProducer) -> None:
    """The rename moves the data; another table is made in the old place since."""
    s.commit("old@1", reads=["src@1"])
    s.minute += 1
    rename = RenameTable(table=named("new"), dataset=dataset("new"))
    s.emit(
        s.minute,
        AlterTable,
        context=CONTEXT,
        identifier=named("old"),
        dataset=dataset("old"),
        generation="1",
        changes=(rename,),
    )
    s.commit("new@2", reads=["src@2"])
    s.commit("sink@1", reads=["new@1"])
    s.commit("sink@2", reads=["new@2"])
    s.expect("tables up new", "1: new <- src")
    s.expect("tables up sink", "1: sink <- new", "2: new <- src")
    s.expect("up sink@1", "1: sink@1 <- new@1", "2: new@1 <- src@1", why=["UNKNOWN_WRITER"])
    s.expect("state new@2 depth=1", "1: new@1..2 <- src@1..2")
    s.expect("down src@1", "1: new@1 <- src@1", "2: sink@1 <- new@1", why=["UNKNOWN_WRITER"])
    s.expect("tables down src", "1: new <- src", "2: sink <- new")


def swapped(s: StoryProducer) -> None:
    """`t` is renamed to `t_old`, `t_new` to `t`: what `t` is made from is reported of neither of the others wrongly."""
    s.generations["t"], s.generations["t_new"] = "A", "B"
    s.commit("t@1", reads=["first@1"])
    s.commit("t_new@1", reads=["second@1"])
    for old, new, generation in (("t", "t_old", "A"), ("t_new", "t", "B")):
        s.minute += 1
        change = RenameTable(table=named(new), dataset=dataset(new))
        s.emit(
            s.minute,
            AlterTable,
            context=CONTEXT,
            identifier=named(old),
            dataset=dataset(old),
            generation=generation,
            changes=(change,),
        )
    s.generations["t"], s.generations["t_old"] = "B", "A"
    s.commit("t@2", reads=["third@1"])
    s.expect("tables up t_old", "1: t_old <- first")
    s.expect("tables up t", "1: t <- second", "1: t <- third")
    s.expect("tables down first", "1: t_old <- first")
    s.expect("up t_old@1 depth=1", "1: t_old@1 <- first@1")
    s.expect("state t@2 depth=1", "1: t@2 <- third@1", "1: t@1 <- second@1")


def made_again(s: StoryProducer) -> None:
    """Snapshot 1 was in two generations: without saying which, the newest is meant."""
    s.generations["t"] = "first"
    s.commit("t@1", reads=["a@1"])
    s.commit("x@1", reads=["t@1"])
    s.emit(s.minute + 1, DropTable, context=CONTEXT, identifier=named("t"), dataset=dataset("t"), generation="first")
    s.minute += 1
    s.generations["t"] = "second"
    s.commit("t@1", reads=["b@1"])
    s.commit("y@1", reads=["t@1"])
    s.expect("up t@1 depth=1", "1: t@1 <- b@1", why=["UNKNOWN_SNAPSHOT"])
    s.expect("up t@1 depth=1 generation=first", "1: t@1 <- a@1")
    s.expect("up x@1", "1: x@1 <- t@1", "2: t@1 <- a@1", why=["UNKNOWN_WRITER"])
    s.expect("up y@1", "1: y@1 <- t@1", "2: t@1 <- b@1", why=["UNKNOWN_WRITER"])
    s.expect("down t@1 generation=first", "1: x@1 <- t@1")
    s.expect("down t@1", "1: y@1 <- t@1", why=["UNKNOWN_SNAPSHOT"])
    s.expect("tables up t", "1: t <- a", "1: t <- b")


def half_known(s: StoryProducer) -> None:
    """A snapshot without a generation may be another: one with the generation that was read comes first."""
    s.generations["t"] = "x"
    s.commit("t@1", reads=["b@1"])
    s.generations["t"] = None
    s.commit("t@1", reads=["a@1"])
    s.generations["t"] = "x"
    s.commit("u@1", reads=["t@1"])
    s.expect("up u@1", "1: u@1 <- t@1", "2: t@1 <- b@1", why=["UNKNOWN_WRITER"])


def branches(s: StoryProducer) -> None:
    """Paimon counts each branch for itself; what it was made on, it has from there."""
    s.format = Format.PAIMON
    s.commit("t@1", reads=["a@1"])
    s.commit("t@2", reads=["a@2"])
    s.minute += 1
    made = {"context": CONTEXT, "identifier": named("t"), "dataset": dataset("t"), "generation": "1"}
    s.emit(s.minute, CreateBranch, **made, branch="dev", snapshot=2)
    s.commit("t[dev]@3", reads=["b@1"])
    s.commit("t@3", reads=["a@3"])
    s.expect("up t[dev]@3 depth=1", "1: t[dev]@3 <- b@1")
    s.expect("up t@3 depth=1", "1: t[dev]@3 <- b@1")  # in the end: the branch's is in its place
    s.expect("state t[dev]@3 depth=1", "1: t[dev]@3 <- b@1", "1: t@1..2 <- a@1..2")
    s.commit("u@1", reads=["t[dev]@3"])
    s.commit("v@1", reads=["t[dev]@1"])
    s.expect("down t[dev]@3 depth=1", "1: u@1 <- t[dev]@3")
    s.expect("down t@3 depth=1", "1: u@1 <- t[dev]@3")
    s.expect("down t@1 depth=1", "1: v@1 <- t[dev]@1")
    s.minute += 1
    s.emit(s.minute, BranchMerged, **made, branch="dev", snapshot=4)
    s.commit("t[dev]@4", reads=["b@2"], minute=s.minute - 0.5)
    s.commit("w@1", reads=["t@4"])
    s.expect("up w@1 depth=2", "1: w@1 <- t@4", "2: t[dev]@4 <- b@2")


def iceberg(s: StoryProducer) -> None:
    """Numbers without an order, one for all branches; a rollback and a fast-forward only point."""
    s.format = Format.ICEBERG
    s.commit("t@900", reads=["a@11"], parent=None, replaced=ALL)
    s.commit("t@100", reads=["a@22"], parent=900)
    s.commit("t@500", reads=["a@33"], parent=100)
    s.commit("t@100", parent=900, replaced=UNKNOWN, kind=CommitKind.ROLLBACK)
    s.commit("t@700", reads=["a@44"], parent=100)
    s.commit("t[audit]@300", reads=["b@55"], parent=700)
    s.commit("t@300", parent=700, replaced=UNKNOWN, kind=CommitKind.FAST_FORWARD)
    s.commit("s@1", reads=["t@900..700"])
    s.expect("up t@300 depth=1", "1: t[audit]@300 <- b@55")
    s.expect("up t@100 depth=1", "1: t@100 <- a@22")
    state = ("1: t[audit]@300 <- b@55", "1: t@700 <- a@44", "1: t@100 <- a@22", "1: t@900 <- a@11")
    s.expect("up state t@300 depth=1", *state)
    s.expect("down t@100 depth=1", "1: s@1 <- t@900..700")
    s.expect("down t@700 depth=1", "1: s@1 <- t@900..700")
    s.expect("down t@900 depth=1")
    s.expect("down t@500 depth=1")
    s.expect("up s@1 depth=2", "1: s@1 <- t@900..700", "2: t@700 <- a@44", "2: t@100 <- a@22")
    s.expect("up t", "1: t[audit]@300 <- b@55", why=["UNKNOWN_WRITER"])


def numbers_again(s: StoryProducer) -> None:
    """A rollback of Paimon's gives numbers again: a reader from before read the snapshot that is gone."""
    s.format = Format.PAIMON
    s.commit("t@1", reads=["a@1"])
    s.commit("t@2", reads=["a@2"])
    s.commit("before@1", reads=["t@2"])
    s.commit("t@1", parent=None, replaced=UNKNOWN, kind=CommitKind.ROLLBACK)
    s.commit("t@2", reads=["a@3"])
    s.commit("after@1", reads=["t@2"])
    s.expect("up before@1", "1: before@1 <- t@2", "2: t@2 <- a@2", why=["UNKNOWN_WRITER"])
    s.expect("up after@1", "1: after@1 <- t@2", "2: t@2 <- a@3", why=["UNKNOWN_WRITER"])
    s.expect("down t@2", "1: after@1 <- t@2")
    s.expect("state t@2 depth=1", "1: t@1..2 <- a@1..3")


def restored(s: StoryProducer) -> None:
    """Delta's RESTORE is a commit of its own, made from the version that it goes back to."""
    s.commit("t@1", reads=["a@1"], replaced=ALL)
    s.commit("t@2", reads=["a@2"])
    s.commit("t@3", reads=["t@1"], replaced=ALL, kind=CommitKind.RESTORE)
    s.commit("t@4", reads=["a@4"])
    s.expect("up state t@4", "1: t@4 <- a@4", "1: t@3 <- t@1", "2: t@1 <- a@1", why=["UNKNOWN_WRITER"])


def altered(s: StoryProducer) -> None:
    """Delta makes a version for an ALTER; the state goes on behind it. CREATE TABLE begins it."""
    made = {"context": CONTEXT, "identifier": named("t"), "dataset": dataset("t"), "generation": "1"}
    s.emit(0, CreateTable, **made, table=Table(), produced=1)
    s.commit("t@2", reads=["a@1"])
    s.minute += 1
    s.emit(s.minute, AlterTable, **made, changes=(AddColumn(path=("x",), type='"long"'),), produced=3, parent=2)
    s.commit("t@4", reads=["a@2"])
    s.expect("state t@4 depth=1", "1: t@2..4 <- a@1..2")
    s.commit("u@1", reads=["t@4"])
    s.expect("down state a@1", "1: t@2 <- a@1", "2: u@1 <- t@4", why=["UNKNOWN_WRITER"])


def compaction(s: StoryProducer) -> None:
    """One commit made data and its compaction; the compaction was made from nothing that was read."""
    s.format = Format.PAIMON
    s.commit("t@1", reads=["a@1"], replaced=UNKNOWN)
    event = s.commit("t@2", "t@3", reads=["a@2"], made_from=[(0,), ()])
    assert event is not None
    s.expect("up t@2 depth=1", "1: t@2 <- a@2")
    s.expect("up t@3 depth=1")
    s.expect("state t@3 depth=1", "1: t@1..2 <- a@1..2")
    s.expect("tables up t", "1: t <- a")


def several_outputs(s: StoryProducer) -> None:
    """A foreachBatch writes two tables, each from another source."""
    s.commit("x@1", "y@1", reads=["a@1", "b@1"], made_from=[(0,), (1,)])
    s.commit("z@1", "w@1", reads=["a@1", "b@1"], made_from=[None, (0, 1)])
    s.expect("up x@1 depth=1", "1: x@1 <- a@1")
    s.expect("up y@1 depth=1", "1: y@1 <- b@1")
    s.expect("up z@1 depth=1", why=["UNKNOWN_SOURCES"])
    s.expect("up w@1 depth=1", "1: w@1 <- a@1", "1: w@1 <- b@1")
    s.expect("down a@1 depth=1", "1: x@1 <- a@1", "1: w@1 <- a@1", why=["UNKNOWN_WRITER", "UNKNOWN_SOURCES"])
    s.expect("tables up x", "1: x <- a")
    s.expect("tables up z", why=["UNKNOWN_SOURCES"])
    s.expect("tables down b", "1: y <- b", "1: w <- b", why=["UNKNOWN_SOURCES"])


def opaque(s: StoryProducer) -> None:
    s.commit("t@1", reads=["a@1"], opaque="RDD")
    s.expect("up t@1 depth=1", "1: t@1 <- a@1", "1: t@1 <- ?RDD", why=["OPAQUE"])
    s.expect("tables up t", "1: t <- a", why=["OPAQUE"])


def columns(s: StoryProducer) -> None:
    copied, summed = Derivation.IDENTITY, Derivation.AGGREGATION
    first = s.shape("b", ["a"], ("a.x", "y", copied), ("a.k", None, Derivation.FILTER), ("a.z", "other", copied))
    s.commit("b@1", reads=["a@1"], shape=first)
    second = s.shape("c", ["b"], ("b.y", "total", summed), ("b.y", None, Derivation.GROUP_BY))
    s.commit("c@1", reads=["b@1"], shape=second)
    rows = ("1: c.total <- b.y AGGREGATION", "1: c.* <- b.y GROUP_BY", "2: b.y <- a.x IDENTITY", "2: b.* <- a.k FILTER")
    s.commit("c@2", reads=["b@1"], shape=bytes(16))
    lacks = ["UNKNOWN_COLUMNS"]
    s.expect("columns up c.total", *rows, why=lacks)
    s.expect("columns up c.total indirect=0", rows[0], rows[2], why=lacks)
    below = ("1: b.y <- a.x IDENTITY", "2: c.total <- b.y AGGREGATION", "2: c.* <- b.y GROUP_BY")
    s.expect("columns down a.x", *below, why=lacks)
    s.expect("columns down a.k", "1: b.* <- a.k FILTER")
    s.expect("columns down a.z", "1: b.other <- a.z IDENTITY", why=lacks)
    s.expect(
        "columns up c.total snapshot=1",
        "1: c@1.total <- b@1.y AGGREGATION",
        "1: c@1.* <- b@1.y GROUP_BY",
        "2: b@1.y <- a@1.x IDENTITY",
        "2: b@1.* <- a@1.k FILTER",
        why=["UNKNOWN_WRITER"],
    )


def deletes(s: StoryProducer) -> None:
    """Which rows a DELETE keeps is decided by another table; no value comes from there."""
    shape = s.shape("t", ["t", "s"], ("t.v", "v", Derivation.IDENTITY), ("s.id", None, Derivation.FILTER))
    s.commit("t@2", reads=["t@1", "s@1"], replaced=PART, kind=CommitKind.DELETE, shape=shape)
    s.expect("columns up t.v", "1: t.v <- t.v IDENTITY", "1: t.* <- s.id FILTER")
    s.expect("columns down s.id", "1: t.* <- s.id FILTER")


def view_of(source: str, *edges: tuple[str, str]) -> View:
    lineage = tuple(
        ColumnLineage(output=0, input=0, source=(one,), target=(other,), derivation=Derivation.IDENTITY)
        for one, other in edges
    )
    return View(sources=(ViewSource(dataset=dataset(source), table=named(source)),), lineage=lineage)


def views(s: StoryProducer) -> None:
    """A view over a view; one that was defined anew; one that was dropped; one whose name another has after a rename,
    and whose properties were changed by a driver that doesn't know what it reads."""

    def about(name: str) -> dict[str, object]:
        return {"context": CONTEXT, "identifier": named(name), "dataset": dataset(name)}

    s.commit("a@1", reads=["raw@1"], shape=s.shape("a", ["raw"], ("raw.r", "x", Derivation.IDENTITY)))
    s.emit(2, CreateView, **about("v"), view=view_of("a", ("x", "y")))
    s.emit(3, CreateView, **about("w"), view=view_of("v", ("y", "z")))
    s.emit(4, CreateView, **about("u"), view=view_of("b", ("x", "y")))
    s.emit(5, CreateView, **about("u"), view=view_of("a", ("x", "q")), replaced=True)
    s.emit(6, CreateView, **about("gone"), view=view_of("a", ("x", "y")))
    s.emit(7, DropView, **about("gone"))
    s.emit(8, CreateView, **about("before"), view=view_of("b", ("x", "y")))
    s.emit(9, AlterView, **about("before"), renamed_to=named("after"), renamed_dataset=dataset("after"))
    s.emit(10, AlterView, **about("after"), new_view=View(), view=None)
    s.emit(11, CreateView, **about("before"), view=view_of("c", ("x", "y")))
    s.expect("tables up w", "1: w <- v", "2: v <- a", "3: a <- raw")
    s.expect("tables down a", "1: v <- a", "1: u <- a", "2: w <- v")
    s.expect("tables down b", "1: after <- b")
    s.expect("tables down c", "1: before <- c")
    s.expect("tables up before", "1: before <- c")
    s.expect("columns down b.x", "1: after.y <- b.x IDENTITY")
    s.expect("tables down b as_of=4.5", "1: u <- b")
    s.expect("columns up w.z", "1: w.z <- v.y IDENTITY", "2: v.y <- a.x IDENTITY", "3: a.x <- raw.r IDENTITY")
    s.expect(
        "columns down raw.r",
        "1: a.x <- raw.r IDENTITY",
        "2: v.y <- a.x IDENTITY",
        "2: u.q <- a.x IDENTITY",
        "3: w.z <- v.y IDENTITY",
    )


def unknown_writers(s: StoryProducer) -> None:
    """Snapshot 2 was made by somebody else: the state from before it isn't known."""
    s.commit("t@1", reads=["a@1"])
    s.commit("t@3", reads=["a@3"])
    s.expect("state t@3 depth=1", "1: t@3 <- a@3", why=["UNKNOWN_WRITER"])
    s.expect("up t@2", why=["UNKNOWN_WRITER"])
    s.commit("m@3", reads=["k@2"], parent=None)
    s.commit("n@1", reads=["m@1..3"])
    s.expect("up n@1 depth=2", "1: n@1 <- m@1..3", "2: m@3 <- k@2", why=["UNKNOWN_WRITER"])


def deleted(s: StoryProducer) -> None:
    """Of a job: what it reported up to then; what it tells since is there. Late facts from before stay hidden."""
    s.commit("t@1", reads=["a@1"], job="one")
    s.commit("u@1", reads=["a@1"], job="two")
    s.emit(7, LineageDeleted, scope=LineageScope.ALL, of_job={"name": "one"}, before=at(5))
    s.commit("t@2", reads=["b@1"], job="one", minute=4)
    s.commit("t@3", reads=["c@1"], job="one", minute=6)
    s.expect("up t@1 depth=1", why=["DELETED"])
    s.expect("tables up t", "1: t <- c", why=["DELETED"])
    s.expect("state t@3 depth=1", "1: t@3 <- c@1", why=["DELETED"])
    s.expect("tables down a", "1: u <- a", why=["DELETED"])
    s.expect("down a@1 depth=1", "1: u@1 <- a@1", why=["DELETED", "UNKNOWN_WRITER"])
    s.expect("up u@1 depth=1", "1: u@1 <- a@1")


def by_policy(s: StoryProducer) -> None:
    """A run's lineage goes with it; another run of the job holds its own."""
    s.commit("t@1", reads=["a@1"], run=501)
    s.commit("t@2", reads=["b@1"], run=501)
    s.commit("t@3", reads=["b@2"], run=502)
    end = {"status": JobStatus.FINISHED, "on_job_end": LineageRetention.DELETE_ALL}
    s.run = s.run.__class__(int=501)
    s.emit(9, JobStatusChanged, **end)
    s.expect("tables up t", "1: t <- b", why=["DELETED"])
    s.expect("up t@1 depth=1", why=["DELETED"])
    s.expect("up t@3 depth=1", "1: t@3 <- b@2")


def expired(s: StoryProducer) -> None:
    """Data lineage of old snapshots expired; what table was made from which stays."""
    s.commit("t@1", reads=["a@1"])
    s.commit("t@2", reads=["a@2"])
    s.emit(3, LineageDeleted, scope=LineageScope.DATA, dataset=dataset("a"), up_to_snapshot=1, before=at(30))
    s.expect("up t@1 depth=1", why=["DELETED"])
    s.expect("up t@2 depth=1", "1: t@2 <- a@2")
    s.expect("tables up t", "1: t <- a")


def unified(s: StoryProducer) -> None:
    s.commit("alias@1", reads=["a@1"])
    s.commit("b@1", reads=["real@1"])
    s.emit(9, DatasetsUnified, dataset=dataset("real"), others=(dataset("alias"),))
    s.expect("tables up b", "1: b <- real", "2: real <- a")
    s.expect("tables down a", "1: real <- a", "2: b <- real")
    s.expect("up b@1", "1: b@1 <- real@1", "2: real@1 <- a@1", why=["UNKNOWN_WRITER"])
    s.expect("down a@1", "1: real@1 <- a@1", "2: b@1 <- real@1", why=["UNKNOWN_WRITER"])


def late(s: StoryProducer) -> None:
    """Told in the wrong order, and of the past."""
    s.commit("c@1", reads=["b@1"], minute=9)
    s.commit("b@1", reads=["a@1"], minute=3)
    s.expect("up c@1", "1: c@1 <- b@1", "2: b@1 <- a@1", why=["UNKNOWN_WRITER"])
    s.expect("tables up c as_of=5")
    s.expect("tables up b as_of=5", "1: b <- a")
    s.expect("up b as_of=5", "1: b@1 <- a@1", why=["UNKNOWN_WRITER"])


def without_versions(s: StoryProducer) -> None:
    """Of files there are no snapshots: the newest commit is meant, and the state is all since the last overwrite."""
    s.format = Format.PARQUET
    s.commit("t", reads=["a"], replaced=ALL)
    s.commit("t", reads=["b"], replaced=ALL)
    s.commit("t", reads=["c"])
    s.expect("up t", "1: t <- c")
    s.expect("state t", "1: t <- c", "1: t <- b")
    s.commit("u@1", reads=["t"])
    s.expect("up u@1", "1: u@1 <- t", why=["UNKNOWN_SNAPSHOT"])
    s.expect("tables up u", "1: u <- t", "2: t <- a", "2: t <- b", "2: t <- c")


STORIES = tuple(
    Story(tell.__name__, tell)
    for tell in (
        diamond,
        cycle,
        self_insert,
        merges,
        restarts,
        streams,
        renamed,
        swapped,
        made_again,
        half_known,
        branches,
        iceberg,
        numbers_again,
        restored,
        altered,
        compaction,
        several_outputs,
        opaque,
        columns,
        deletes,
        views,
        unknown_writers,
        deleted,
        by_policy,
        expired,
        unified,
        late,
        without_versions,
    )
)


def guide(s: StoryProducer) -> None:
    """What docs/questions.md shows."""
    copied, summed = Derivation.IDENTITY, Derivation.AGGREGATION
    merged = s.shape("daily", ["orders"], ("orders.amount", "total", summed), ("orders.day", None, Derivation.GROUP_BY))
    shown = s.shape("report", ["daily"], ("daily.total", "revenue", copied))
    s.commit("orders@1", reads=["landing@1"], replaced=ALL, kind=CommitKind.CREATE, job="ingest")
    s.commit("orders@2", reads=["landing@2"], job="ingest")
    arrivals = {"context": CONTEXT, "identifier": named("arrivals"), "dataset": dataset("arrivals")}
    s.emit(s.minute, CreateView, **arrivals, view=view_of("landing", ("id", "id")))
    s.commit("daily@1", reads=["orders@1"], replaced=ALL, kind=CommitKind.CREATE, job="rollup", shape=merged)
    s.commit("daily@2", reads=["orders@1..2"], replaced=PART, kind=CommitKind.MERGE, job="rollup", shape=merged)
    s.commit("report@1", reads=["daily@2"], job="reporting", shape=shown)
