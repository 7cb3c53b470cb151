"""A wrong order is corrected in full, by the commands, while production goes on: mirrors have the rows of a history
without the error, which was worked out by hand, and production's tables have what production made.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import Connection

from headwater.lineage.questions.history import history
from headwater.lineage.questions.snapshots import downstream_snapshots, upstream_snapshots
from headwater.lineage.store import open_store
from headwater.versions import check
from tests.kit.cases.corrections import TRUTH, WRONG, CorrectedPlace
from tests.kit.cases.stream_corrections import WRONG as WRONG_VERSION
from tests.kit.cases.stream_corrections import StreamPlace
from tests.kit.cases.validation import FORMATS

pytestmark = [pytest.mark.timeout(900)]


STAGES = [[("details", "details")], [("daily", "revenue"), ("daily", "top10")]]
"""The jobs by the scripts that they are steps of, each with the table that it writes."""


@pytest.fixture
def make_place(tmp_path: Path, java_home: Path) -> Callable[[str], CorrectedPlace]:
    def make(name: str) -> CorrectedPlace:
        extensions, db = FORMATS[name]
        return CorrectedPlace(tmp_path, java_home, extensions, db, name)

    return make


def correct_all(place: CorrectedPlace, mode: str = "full") -> str:
    """Return the correction's name."""
    place.begin_story()
    begun = place.correct("begin", f"{place.database}.orders@{place.wrong_snapshot()}", "--mode", mode)
    name = str(begun["correction"])
    assert [mirror["table"].rpartition(".")[2] for mirror in begun["mirrors"]] == [
        *("orders", "details", "revenue", "top10"),
    ]
    place.go_on(place.repair(name))
    ran = place.correct("run", name)
    jobs = [", ".join(f"{job}.{place.database}.{table}" for job, table in stage) for stage in STAGES]
    assert [each["jobs"] for each in ran["ran"]] == jobs
    assert (ran["commits"], ran["is_up_to_date"]) == (2, True)
    return name


@pytest.mark.long
@pytest.mark.needs("iceberg")
def test_a_chain_is_corrected_on_mirrors_of_iceberg(make_place: Callable[[str], CorrectedPlace]) -> None:
    """The whole way, with real processes. Nothing else runs a correction's jobs."""
    place = make_place("iceberg")
    name = correct_all(place)
    assert place.look(name) == {"production": WRONG, "mirrors": TRUTH}


@pytest.mark.long
@pytest.mark.needs("iceberg")
def test_a_corrected_chain_takes_the_place_of_production(make_place: Callable[[str], CorrectedPlace]) -> None:
    """The whole way to its end, by the commands: the tables are those of a history without the error."""
    place = make_place("iceberg")
    name = correct_all(place)
    switched = place.correct("switch", name, "--yes")["switched"]
    assert place.look() == {"production": TRUTH}
    assert (place.correct("show", name)["correction"]["state"], place.mirrors()) == ("SWITCHED", [])
    at = {each["table"].rpartition(".")[2]: each["snapshot"] for each in switched}
    assert list(at) == ["orders", "details", "revenue", "top10"]
    with open_store(place.store) as store, store.engine.connect() as connection:
        check_lineage(connection, place.database, name, {table: int(number) for table, number in at.items()})
    plan = place.correct("plan", f"{place.database}.orders@{place.wrong_snapshot()}")
    assert {each["verdict"] for each in plan["tables"]} == {"RIGHT"}


def check_lineage(connection: Connection, db: str, name: str, at: dict[str, int]) -> None:
    """Lineage is as if production had made it right. It finds jobs on mirrors, which have the mark of validations, that
    would hide what the switched tables were made from, or appear beside it."""
    tables = {table: f"{db}.{table}@{number}" for table, number in at.items()}
    assert check(connection, list(tables.values())).is_consistent is True
    read = {edge.source.label for edge in upstream_snapshots(connection, tables["details"], depth=1).rows}
    [products] = [label for label in read if label.startswith(f"{db}.products@")]
    assert read == {products, tables["orders"]}
    made = {(edge.target.label, edge.job) for edge in downstream_snapshots(connection, products).rows}
    for table in ("details", "revenue", "top10"):
        assert (tables[table], "headwater correct") in made
        entry = history(connection, f"{db}.{table}").rows[-1]
        assert (entry.kind, entry.detail["correction"], entry.detail["snapshot"]) == (
            *("CorrectionSwitched", name, at[table]),
        )


@pytest.mark.long
@pytest.mark.needs("delta")
def test_a_chain_is_corrected_on_mirrors_of_delta(make_place: Callable[[str], CorrectedPlace]) -> None:
    """Mirrors are tables of their own there, and the metastore has one user at a time."""
    place = make_place("delta")
    name = correct_all(place)
    assert place.look(name) == {"production": WRONG, "mirrors": TRUTH}
    place.correct("abort", name, "--yes")
    assert place.mirrors() == []


@pytest.mark.long
@pytest.mark.needs("paimon")
def test_a_chain_is_corrected_on_mirrors_of_paimon(make_place: Callable[[str], CorrectedPlace]) -> None:
    place = make_place("paimon")
    name = correct_all(place)
    assert place.look(name) == {"production": WRONG, "mirrors": TRUTH}
    place.correct("abort", name, "--yes")
    assert place.mirrors() == []


@pytest.mark.long
@pytest.mark.parametrize("form", [pytest.param(form, marks=pytest.mark.needs(form)) for form in ("iceberg", "paimon")])
def test_a_chain_of_batch_jobs_is_corrected_incrementally(
    make_place: Callable[[str], CorrectedPlace], form: str
) -> None:
    """Mirrors begin at what was right, and jobs run for what came after it."""
    place = make_place(form)
    name = correct_all(place, "incremental")
    assert place.look(name) == {"production": WRONG, "mirrors": TRUTH}


@pytest.mark.long
@pytest.mark.needs("delta")
def test_a_stream_is_corrected_incrementally_by_its_own_script(tmp_path: Path, java_home: Path) -> None:
    """By the commands, with real processes: a script whose query never ends in production, and its checkpoint there."""
    extensions, database = FORMATS["delta"]
    place = StreamPlace(tmp_path, java_home, extensions, database, "delta")
    place.begin_story()
    assert place.totals() == {"a": 40, "b": 4020}
    wrong, orders = f"{database}.orders@{WRONG_VERSION}", f"{database}.orders"
    [job] = place.correct("plan", wrong, "--mode", "incremental", code=1)["jobs"]
    place.say_commands(job["job"])
    name = str(place.correct("begin", wrong, "--mode", "incremental")["correction"])
    place.play({"sql": [place.order(5, "a", 50)]}, place.stream())
    place.correct("sql", name, f"INSERT INTO {orders} SELECT id, item, CAST(price / 100 AS INT) FROM wrong_rows")
    assert place.correct("run", name)["is_up_to_date"] is True
    [stream] = place.correct("switch", name, "--yes")["streams"]
    assert place.totals() == {"a": 90, "b": 60}
    assert (place.forks(), (place.folder / "started" / "offsets").exists()) == ([Path(stream["checkpoint"]).name], True)
    place.play({"sql": [place.order(6, "b", 60)]}, place.stream(stream["checkpoint"]))
    assert place.totals() == {"a": 90, "b": 120}
