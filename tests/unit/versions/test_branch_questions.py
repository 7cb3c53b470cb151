"""Versions of branches, by the names that Spark has for them: what they contain, and what goes with them."""

from __future__ import annotations

import pytest
from sqlalchemy import Connection

from headwater import versions
from headwater.cli.alignment_sql import from_clause
from headwater.events import CreateBranch
from headwater.events.scalars import Format
from headwater.testing.examples import CONTEXT
from headwater.versions import align, check, contained
from headwater.versions.finder import find_versions
from tests.kit.lineage.all_stories import named
from tests.kit.lineage.scripted_producer import dataset, store
from tests.kit.lineage.stories import StoryProducer

BRANCHES = [(Format.ICEBERG, "a.branch_fix", 12), (Format.PAIMON, "`a$branch_fix`", 2)]


@pytest.fixture(params=BRANCHES, ids=["iceberg", "paimon"])
def corrected(request: pytest.FixtureRequest, connection: Connection) -> tuple[str, int]:
    """`a` was branched off at 1 and corrected. b and c are made from main, d and e from the branch."""
    form, name, number = request.param
    story = StoryProducer()
    story.format = form
    made = {"context": CONTEXT, "identifier": named("a"), "dataset": dataset("a"), "generation": "1"}
    story.commit("a@1", parent=None)
    story.emit(story.minute + 0.5, CreateBranch, **made, branch="fix", tag="eod", snapshot=1)
    story.commit(f"a[fix]@{number}", parent=1)
    story.commit("a@2" if form is Format.PAIMON else "a@3", parent=1)
    main = 2 if form is Format.PAIMON else 3
    for sink, read in (("b", f"a@{main}"), ("c", f"a@{main}"), ("d", f"a[fix]@{number}"), ("e", f"a[fix]@{number}")):
        story.commit(f"{sink}@1", reads=[read])
    store(connection, story)
    return name, number


def test_a_branch_goes_with_what_was_made_from_it_and_main_with_the_others(
    corrected: tuple[str, int], connection: Connection
) -> None:
    """Paimon's branch and main have the same number here, with other rows."""
    name, number = corrected
    assert check(connection, [name, "d"]).is_consistent is True
    assert check(connection, [f"{name}@{number}", "e"]).is_consistent is True
    assert check(connection, [name, "b"]).is_consistent is False
    assert check(connection, ["a", "b"]).is_consistent is True
    assert check(connection, ["a", "d"]).is_consistent is False


def test_a_branch_is_aligned_and_read_by_what_sql_calls_it(corrected: tuple[str, int], connection: Connection) -> None:
    name, number = corrected
    found = align(connection, [name, "d"])
    branch = found.rows[0].table
    assert (branch.branch, branch.snapshot) == ("fix", number)
    with pytest.raises(versions.NoAlignmentError):
        align(connection, [name, "b"])
    clause = from_clause([row.table for row in found.rows])
    table = "lake.db.`a$branch_fix`" if branch.format == "PAIMON" else "lake.db.a"
    assert clause.startswith(f"FROM {table} VERSION AS OF {number} AS ")


def test_consistent_reads_pin_a_branch_and_never_main_for_it(
    corrected: tuple[str, int], connection: Connection
) -> None:
    """Fails if a name that is left out has the others taken for tables alone: then the branch has main's version."""
    name, number = corrected
    for others in (["lake.db.d"], ["lake.db.d", "lake.db.nobody"]):
        found = find_versions(connection, [f"lake.db.{name}", *others])
        assert {pin.name: pin.version for pin in found.pins}[f"lake.db.{name}"] == str(number)
        assert len(found.reasons) == len(others) - 1
    both = find_versions(connection, [f"lake.db.{name}", "lake.db.b", "lake.db.a"])
    assert {pin.name for pin in both.pins} == {"lake.db.a", "lake.db.b"}
    assert f"it is the branch fix of lake.db.{'`' if '`' in name else ''}a" in both.reasons[0]


def test_what_a_branch_contains_is_asked_by_its_name_or_beside_it(
    corrected: tuple[str, int], connection: Connection
) -> None:
    name, number = corrected
    one, other = contained(connection, name), contained(connection, "a", branch="fix")
    assert (one.of, one.of.branch, one.of.snapshot) == (other.of, "fix", number)
    main = contained(connection, name.replace("fix", "main")).of
    assert (main.branch, main.snapshot) == (None, contained(connection, "a").of.snapshot)
