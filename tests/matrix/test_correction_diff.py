"""`headwater correct diff` on a real mirror of Delta: rows by a key and without, as text, JSON and a page.

The truth is written by hand. Nothing else compares a mirror with its table.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from html.parser import HTMLParser
from typing import Any

import pytest

from headwater.cli import main
from headwater.cli.exits import Exit
from headwater.versions import spark_tables
from headwater.versions.branches import BranchManager
from headwater.versions.correction.journal import CorrectionJournal, CorrectionState
from headwater.versions.step_journal import NewStep, StepKind, StepState
from tests.kit.spark.driver import Driver, shared_driver_fixture
from tests.kit.stores import open_new_store
from tests.kit.versions.branches import EXTENSIONS
from tests.kit.versions.corrections import planned_chain

pytestmark = [
    pytest.mark.spark,
    pytest.mark.long,
    pytest.mark.needs("iceberg", "delta"),
    pytest.mark.xdist_group("branches"),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # pyspark's, of `collect`
]

driver = shared_driver_fixture(EXTENSIONS)
HOSTILE = "<img/src/onerror'\">&"
"""A column's name, and a value: Delta takes both."""


@pytest.fixture(scope="module")
def correction(driver: Driver, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str, str]:
    """Return the store, the correction's name and the table. Of its rows 1 to 4 the mirror has 1 and 2 as they are, 3
    with another value, not 4, but 5 and 6. The second table is as its mirror."""
    database = driver.database("spark_catalog")
    tables = [f"spark_catalog.{database}.{table}" for table in ("orders", "details")]
    for table in tables:
        driver.run(
            f"CREATE TABLE {table} (id INT, v STRING, `{HOSTILE}` INT) USING delta",
            f"INSERT INTO {table} VALUES (1, 'a', 1), (2, NULL, 2), (3, 'wrong', 3), (4, 'd', 4)",
        )
    mirrors = []
    for table in tables:
        manager = BranchManager(driver.spark, table)
        manager.create("correction_1", "1")
        mirrors.append(manager.name_of("correction_1"))
    hostile = HOSTILE.replace("'", "\\'")
    driver.run(
        f"UPDATE {mirrors[0]} SET v = '{hostile}' WHERE id = 3",
        f"DELETE FROM {mirrors[0]} WHERE id = 4",
        f"INSERT INTO {mirrors[0]} VALUES (5, 'e', 5), (6, 'f', 6)",
    )
    path = str(tmp_path_factory.mktemp("diff") / "store.db")
    with open_new_store(path) as store:
        steps: list[NewStep] = [(StepKind.MIRROR, table, {}) for table in tables]
        journal = CorrectionJournal.create(store, planned_chain(tables), steps)
        epoch = journal.take_over()
        for step, name in zip(journal.load().steps, mirrors, strict=True):
            detail = {"table": step.subject, "branch": "correction_1", "name": name, "expected": 1}
            detail |= {"begins_at": 0, "begins_at_in_table": 1}
            journal.move_step(epoch, journal.move_step(epoch, step, StepState.RUNNING), StepState.DONE, detail)
        journal.move(epoch, [CorrectionState.BEGINNING], CorrectionState.OPEN)
    return path, journal.name, tables[0]


@pytest.fixture(autouse=True)
def session(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the command use the test's session, which goes on after it."""

    @contextmanager
    def command_session(properties: Mapping[str, str], command: str, **_: bool) -> Generator[Any]:
        yield driver.spark

    monkeypatch.setattr(spark_tables, "command_session", command_session)
    monkeypatch.setattr(spark_tables, "end_jvm", lambda: None)


def ask(capfd: pytest.CaptureFixture[str], correction: tuple[str, str, str], *words: str) -> str:
    """Return the answer of a comparison that finds differences."""
    store, name, _ = correction
    capfd.readouterr()
    assert main(["correct", "diff", name, *words, "--store", store]) == Exit.FAILED
    return capfd.readouterr().out


def test_tables_and_rows_are_as_counted_by_hand(
    correction: tuple[str, str, str], capfd: pytest.CaptureFixture[str]
) -> None:
    """Without a key a row that changed is one that only production has and one that only the mirror has."""
    table = correction[2]
    tables = json.loads(ask(capfd, correction, "-o", "json"))["tables"]
    assert [(each["production"], each["mirror"], each["equal"]) for each in tables] == [(4, 5, 2), (4, 4, 4)]
    assert [each["verdict"] for each in tables] == [
        *("different: 2 rows only production, 3 rows only in the mirror", "equal"),
    ]
    found = json.loads(ask(capfd, correction, table, "--key", "id", "-o", "json"))
    counts = {name: found["rows"][name] for name in ("production", "mirror", "equal", "different")}
    assert counts == {"production": 4, "mirror": 5, "equal": 2, "different": 1}
    assert (found["rows"]["only_production"], found["rows"]["only_in_the_mirror"]) == (1, 2)
    text = ask(capfd, correction, table, "--key", "id")
    for words in ("id=3", "wrong", HOSTILE, "id=4", "id=5", "id=6"):
        assert words in text, text


class Texts(HTMLParser):
    """Collects the tags of a page, and its texts as a reader sees them."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.texts.append(data.strip())


def test_the_page_shows_hostile_names_and_values_as_they_are(
    correction: tuple[str, str, str], capfd: pytest.CaptureFixture[str]
) -> None:
    """It finds a name that becomes a tag, or an attribute, of the page."""
    page = Texts()
    page.feed(ask(capfd, correction, "-o", "html"))
    assert HOSTILE in page.texts
    assert {"wrong", "d", "e", "1 of 2 tables differ", correction[2]} <= set(page.texts)
    assert not [tag for tag, attributes in page.tags if tag == "img" or any("onerror" in key for key in attributes)]
