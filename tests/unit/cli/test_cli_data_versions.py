"""`headwater version show`, `check` and `align` on a small store."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from headwater.cli import main
from headwater.cli.alignment_sql import from_clause
from headwater.cli.exits import Exit
from headwater.errors import ConfigurationError
from headwater.lineage.questions.datasets import Dataset
from headwater.lineage.store import open_store
from headwater.versions import TableAt
from headwater.versions.aligned import Cut, GroupClaims, TableSnapshot
from tests.kit.lineage.scripted_producer import store
from tests.kit.lineage.stories import StoryProducer
from tests.kit.stores import open_new_store
from tests.kit.versions.two_jobs import two_jobs


@pytest.fixture(autouse=True)
def _store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADWATER_STORE", str(tmp_path / "lineage.db"))
    story = two_jobs()
    story.commit("x@1")
    story.commit("y@1")
    with open_new_store(str(tmp_path / "lineage.db")) as opened, opened.engine.begin() as connection:
        store(connection, story)


def test_alone_it_is_the_version_of_headwater(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["version"]) == Exit.DONE
    assert capsys.readouterr().out.startswith("headwater ")
    assert main(["version", "-o", "json"]) == Exit.DONE
    assert "python" in json.loads(capsys.readouterr().out)


def test_what_a_table_contains(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["version", "show", "b@11", "--branch", "main"]) == Exit.DONE
    capsys.readouterr()
    assert main(["version", "show", "b@11", "-o", "json"]) == Exit.DONE
    [row] = json.loads(capsys.readouterr().out)["contained"]
    assert (row["table"], row["read_by"], row["whole"], row["job"]) == ("lake.db.a@20", "lake.db.b", "yes", "Job-A")


def test_the_exit_code_says_whether_they_belong_together(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["version", "check", "b@11", "c@15"]) == Exit.DONE
    assert "belong together  yes" in capsys.readouterr().out
    assert main(["version", "check", "b", "c", "-o", "json"]) == Exit.FAILED
    answer = json.loads(capsys.readouterr().out)
    assert answer["verdict"]["belong_together"] == "no"
    assert [row["contained"] for row in answer["shared"]] == ["lake.db.a@21", "lake.db.a@20"]
    assert [(row["commit"], row["lacking_in"]) for row in answer["lacked"]] == [("lake.db.a@21", "lake.db.c@15")]


def test_what_is_not_known_has_an_exit_code_of_its_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A script that takes 1 for "no" would undo what may be right."""
    story = StoryProducer(3)
    story.commit("p@1", minute=200)
    story.commit("q@1", reads=["p@1"], opaque="an RDD", minute=201)
    story.commit("r@1", reads=["p@1"], minute=202)
    with open_store(str(tmp_path / "lineage.db")) as opened, opened.engine.begin() as connection:
        store(connection, story)
    assert main(["version", "check", "q", "r"]) == Exit.UNKNOWN
    assert "belong together  unknown" in capsys.readouterr().out


def test_what_is_behind_a_table_is_below_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with open_store(str(tmp_path / "lineage.db")) as opened, opened.engine.begin() as connection:
        story = StoryProducer(2)
        story.commit("z@1", minute=100)
        story.commit("y@1", reads=["z@1"], minute=101)
        story.commit("x@1", reads=["y@1", "b@11"], minute=102)
        store(connection, story)
    assert main(["version", "show", "x@1"]) == Exit.DONE
    shown = re.findall(r"^( +lake\.db\.\S+)", capsys.readouterr().out, re.MULTILINE)
    assert shown == ["  lake.db.b@11", "    lake.db.a@20", "  lake.db.y@1", "    lake.db.z@1"]


def test_tables_that_share_nothing_are_not_said_to_fit_without_a_word(capsys: pytest.CaptureFixture[str]) -> None:
    """Else who asks for the wrong tables takes it for an answer."""
    assert main(["version", "check", "x", "y"]) == Exit.DONE
    assert "made from no table in common" in capsys.readouterr().out
    assert main(["version", "align", "x", "y"]) == Exit.DONE
    said = capsys.readouterr().out
    assert "made from no table in common" in said
    assert "They belong together" not in said


def test_a_from_clause_is_ready_to_paste(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["version", "align", "b", "c", "-o", "sql"]) == Exit.DONE
    expected = "FROM lake.db.b VERSION AS OF 11 AS b,\n     lake.db.c VERSION AS OF 15 AS c\n"
    assert capsys.readouterr().out == expected


def test_a_from_clause_names_each_table_by_itself() -> None:
    """It finds SQL that Spark refuses, or reads another table with."""

    def at(name: str, format_name: str | None = "ICEBERG", snapshot: int | None = 7) -> TableAt:
        return TableAt(Dataset(name.encode(), known_as=(name,)), snapshot, None, None, None, None, format_name)

    found = from_clause([at("lake.db.b"), at("lake.mart.b"), at("lake.db.c`d", "HUDI"), at("s3://w/t", "DELTA")])
    assert found.splitlines() == [
        "FROM lake.db.b VERSION AS OF 7 AS lake_db_b,",
        "     lake.mart.b VERSION AS OF 7 AS lake_mart_b,",
        "     lake.db.`c``d` TIMESTAMP AS OF '7' AS `c``d`,",
        "     delta.`s3://w/t` VERSION AS OF 7 AS t",
    ]
    with pytest.raises(ConfigurationError, match="its format isn't known"):
        from_clause([at("s3://w/t", None)])
    with pytest.raises(ConfigurationError, match="not by the number of a snapshot"):
        from_clause([at("lake.db.b", snapshot=None)])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["align", "b", "c", "--look-back", "9" * 30], "isn't a number of things"),
        (["align", "b", "c", "--look-back-time", "99999999999d"], "is longer than any calendar"),
        (["align", "b", "c", "--data-version", "shop@" + "9" * 30], "is no data version: write GROUP@N"),
    ],
)
def test_a_number_without_bounds_is_no_answer(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    """It finds an error of Python's, which ends with 1 as "they don't belong together" does."""
    with pytest.raises(SystemExit) as end:
        main(["version", *words])
    assert end.value.code == Exit.USAGE
    assert said in capsys.readouterr().err


def test_none_that_belong_together_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["version", "align", "b", "c", "--at", "a@21"]) == Exit.FAILED
    assert "lake.db.c@15 contains lake.db.a@20" in capsys.readouterr().err


def test_data_versions_of_a_group_with_the_jobs_that_are_late(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["version", "list"]) == Exit.DONE
    assert "none" in capsys.readouterr().out
    assert main(["version", "list", "shop"]) == Exit.CONFIGURATION
    assert "no group 'shop'" in capsys.readouterr().err
    with open_store(str(tmp_path / "lineage.db")) as opened:
        claims = GroupClaims(opened, "shop")
        claims.enter(["lake.db.a"])
        for number in (1, 2):
            claims.claim(number, Cut({"lake.db.a": TableSnapshot(number + 20)}), "fast")
        for job, done in (("fast", 2), ("slow", 1)):
            claims.move(job, claims.take_over(job, f"/checkpoints/{job}"), done=done, running=None)
    assert main(["version", "align", "b", "c", "--data-version", "shop@1", "-o", "json"]) == Exit.FAILED
    assert "lake.db.c@15 contains lake.db.a@20" in capsys.readouterr().err
    assert main(["version", "align", "b", "c", "--data-version", "shop@3"]) == Exit.CONFIGURATION
    assert "headwater version list shop" in capsys.readouterr().err
    assert main(["version", "align", "b", "c", "--data-version", "shop@1", "--as-of", "1d"]) == Exit.CONFIGURATION
    assert "can't be combined" in capsys.readouterr().err
    assert main(["version", "list", "shop", "-o", "json"]) == Exit.DONE
    answer = json.loads(capsys.readouterr().out)
    shown = [(row["number"], row["cut"], row["done_by"], row["late"]) for row in answer["versions"]]
    assert shown == [(2, "lake.db.a@22", "fast", "slow"), (1, "lake.db.a@21", "fast, slow", "")]
    assert [(row["job"], row["behind"]) for row in answer["jobs"]] == [("fast", 0), ("slow", 1)]
    assert main(["version", "list", "-o", "json"]) == Exit.DONE
    [group] = json.loads(capsys.readouterr().out)["groups"]
    assert (group["group"], group["newest"], group["tables"]) == ("shop", 2, ["lake.db.a"])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["show", "b@99"], "no snapshot 99 of lake.db.b: nobody is known to have written or read it. The store"),
        (["check", "b@99", "c"], "no snapshot 99 of lake.db.b: nobody is known to have written or read it. The store"),
        (["align", "b", "c", "--at", "a@99"], "no snapshot 99 of lake.db.a: nobody is known to have written or read"),
        (["check", f"b@{2**63}", "c"], "no snapshot has a number of so many digits"),
        (["align", "b", "c", "--at", f"a@{-(2**63) - 1}"], "no snapshot has a number of so many digits"),
        (["show", "b@٣"], "knows no table"),
        (["show", "b", "--branch", "nix"], "knows no branch 'nix' of lake.db.b: nobody is known to have written it"),
        (["show", "nix"], "knows no table 'nix'"),
        (["check", "b", "nix"], "knows no table 'nix'"),
        (["align", "b", "nix"], "knows no table 'nix'"),
        (["check", "b", "c", "--store", "sqlite:///nowhere.db"], "nowhere.db"),
        (["check", "b", "c.branch_test"], "knows no branch 'test' of lake.db.c: nobody is known to have written it"),
        (["check", "b", "c.branch_test@99"], "no snapshot 99 of lake.db.c"),
        (["align", "b", "lake.db.c.tag_eod"], "is the tag eod of lake.db.c: write it as lake.db.c@eod"),
        (["check", "b", "c.snapshots"], "is a metadata table of lake.db.c: versions are of tables"),
        (["check", "b", "c.day"], "'c.day' names a column: versions are of tables"),
        (["check", "b", "c@main"], "leave @main out"),
        (["check", "b", "c@test"], "if it is a branch, name the branch by --branch where a command has that"),
    ],
)
def test_what_isnt_there_is_said_and_is_no_answer(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """It finds an exit code that a script takes for "they don't belong together"."""
    assert main(["version", *words]) == Exit.CONFIGURATION
    assert said in capsys.readouterr().err
