"""`headwater forward`: which forwarders run, with what, what they leave behind, and what is said where it is wrong."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headwater.cli.app import leaf_parser, main
from headwater.cli.commands import Leaf, walk
from headwater.cli.forward.arguments import ForwardFlags
from headwater.events.avro import Codec
from headwater.events.keys import headers_of, key_of
from headwater.forwarders.state import ForwarderLock
from headwater.journal import LocalLog
from headwater.testing.examples import EXAMPLES
from tests.kit.forwarders.targets import recorded

pytestmark = pytest.mark.slow

TYPE = "tests.kit.forwarders.targets:Recorder"
COMMITS = [event for event in EXAMPLES if event.kind == "Committed"]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    place = tmp_path / "log"
    with LocalLog.open(place).writer() as journal:
        for event in EXAMPLES:
            journal.append(Codec().encode(event), key=key_of(event), headers=headers_of(event, bytes(8)))
    return place


@pytest.fixture
def file(tmp_path: Path, log: Path) -> Path:
    place = tmp_path / "forward.toml"
    place.write_text(
        f'bus = "log:{log}"\nstate = "{tmp_path}/state"\nuntil-end = true\n'
        f'[forwarders.first]\ntype = "{TYPE}"\nfile = "{tmp_path}/first"\n'
        f'[forwarders.second]\ntype = "{TYPE}"\nfile = "{tmp_path}/second"\n'
        'include.kinds = ["Committed", "JobLineage"]\nexclude.jobs = "clicks"\n'
    )
    return place


Runner = Callable[..., Any]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], file: Path) -> Runner:
    """Run a command with the file, and return what it answers as JSON. It has to end with this code."""

    def runner(*words: str, code: int = 0) -> Any:
        capsys.readouterr()
        assert main(["-o", "json", "forward", *words, "--config", str(file)]) == code
        out = capsys.readouterr().out
        return json.loads(out) if out else None

    return runner


def ids(place: Path) -> list[str]:
    return [event for event, _ in recorded(place)]


def test_several_run_in_one_process_each_with_its_filters(run: Runner, tmp_path: Path) -> None:
    answer = run("run")
    assert {row["name"]: row["sent"] for row in answer["forwarded"]} == {"first": len(EXAMPLES), "second": 3}
    assert ids(tmp_path / "first") == [str(event.event_id) for event in EXAMPLES]
    wanted = [event for event in EXAMPLES if event.kind in {"Committed", "JobLineage"}]
    assert ids(tmp_path / "second") == [str(event.event_id) for event in wanted if "clicks" not in str(event.job)]


def test_one_that_is_named_runs_alone_and_goes_on_where_it_ended(run: Runner, tmp_path: Path) -> None:
    assert [row["name"] for row in run("run", "second")["forwarded"]] == ["second"]
    assert not (tmp_path / "first").exists()
    assert run("run", "second")["forwarded"][0]["sent"] == 0


def test_one_that_begins_at_the_end_gets_what_comes_then(run: Runner, tmp_path: Path, log: Path) -> None:
    assert run("run", "first", "--start", "end")["forwarded"][0]["sent"] == 0
    with LocalLog.open(log).writer() as journal:
        journal.append(Codec().encode(COMMITS[0].model_copy(update={"sequence": 10_000})))
    assert run("run", "first", "--start", "end")["forwarded"][0]["sent"] == 1
    assert ids(tmp_path / "first") == [f"{COMMITS[0].producer}-10000"]


def test_the_status_says_how_far_each_is_and_its_exit_code_whether_all_run(run: Runner) -> None:
    run("run")
    answer = run("status", code=1)
    first, second = answer["forwarders"]
    assert (first["name"], first["type"], first["state"], first["lag"]) == ("first", TYPE, "stopped", 0)
    assert (second["sent"], second["dead_letters"], second["last_error"]) == (3, 0, None)
    assert [row["name"] for row in run("status", "second", code=1)["forwarders"]] == ["second"]


@pytest.fixture
def ask(capsys: pytest.CaptureFixture[str], file: Path) -> Runner:
    """Run `headwater dead-letter` for the forwarder `first`, as `run` does."""

    def runner(action: str, *words: str, code: int = 0) -> Any:
        capsys.readouterr()
        of = ["--of", "forwarder:first", "--config", str(file)]
        assert main(["-o", "json", "dead-letter", action, *of, *words]) == code
        out = capsys.readouterr().out
        return json.loads(out) if out else None

    return runner


def test_dead_letters_are_listed_shown_retried_and_dropped(run: Runner, ask: Runner, tmp_path: Path) -> None:
    refusing = ("--option", "first.refuse=DropTable")
    assert run("run", "first", *refusing)["forwarded"][0]["dead_letters"] == 1
    (letter,) = ask("list")["dead_letters"]
    assert (letter["kind"], letter["reason"], letter["why"]) == ("DropTable", "REFUSED", "not this kind")
    assert letter["place"].startswith(f"log {tmp_path}/log/0@")
    assert ask("list", "--reason", "FAULT")["dead_letters"] == []
    place = tmp_path / "event"
    shown = ask("show", letter["name"], "--into", str(place))["dead_letter"]
    assert (shown["kind"], shown["size"]) == ("DropTable", len(place.read_bytes()))
    (planned,) = run("plan", "first", "--events", str(place))["messages"]
    assert planned["message"].startswith("DropTable ")
    assert [row["now"] for row in ask("retry", "--all")["dead_letters"]] == ["to be sent"]
    assert ask("list")["dead_letters"][0]["state"] == "RETRY"
    run("run", "first", *refusing)
    (letter,) = ask("list")["dead_letters"]
    assert (letter["attempts"], letter["state"]) == (2, "WAITING")
    ask("retry", letter["name"])
    run("run", "first")
    assert ask("list", "--all")["dead_letters"] == []
    assert len(ids(tmp_path / "first")) == len(EXAMPLES)


def test_dropping_a_dead_letter_asks(run: Runner, ask: Runner) -> None:
    run("run", "first", "--option", "first.refuse=DropTable")
    ask("drop", "--all", code=78)
    assert ask("drop", "--all", "--dry-run")["done"] is False
    assert ask("drop", "--all", "--yes")["dropped"] == 1
    assert ask("list")["dead_letters"] == []
    assert [row["state"] for row in ask("list", "--all")["dead_letters"]] == ["DROPPED"]
    assert run("status", code=1)["forwarders"][0]["dead_letters"] == 0


def test_a_plan_shows_the_newest_events_about_a_table_after_the_filters(run: Runner, tmp_path: Path) -> None:
    found = run("plan", "second", "--table", "sales.daily", "--limit", "5")["messages"]
    assert [row["kind"] for row in found] == ["Committed"] * 3 + ["StatementFailed", "CorrectionSwitched"]
    assert found[0]["message"] == f"Committed {COMMITS[0].event_id}"
    assert found[1]["message"] == found[3]["message"] == "nothing: its filters leave it out"
    assert not (tmp_path / "second").exists()


def test_a_test_says_what_is_wrong_with_the_target(run: Runner, tmp_path: Path) -> None:
    assert [each["status"] for each in run("test", "first")["findings"]] == ["ok"]
    (tmp_path / "first.away").touch()
    found = run("test", "first", code=1)["findings"]
    assert [each["status"] for each in found] == ["ok", "error"]
    assert not (tmp_path / "first").exists()


def test_the_list_has_what_is_installed_and_what_is_configured(run: Runner) -> None:
    answer = run("list")
    assert {"type": "openlineage", "usable": True, "why_not": None} in answer["types"]
    assert [row["name"] for row in answer["forwarders"]] == ["first", "second"]


def test_what_holds_is_shown_without_secrets(run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADWATER_FORWARD_OPTIONS", "datahub.token=abc123\ndatahub.url=http://gms:8080")
    rows = run("run", "--print-config", "--start=end")["configuration"]
    found = {row["key"]: row["value"] for row in rows}
    assert "abc123" not in str(rows)
    assert (found["start"], found["forwarders.datahub.url"]) == ("end", "http://gms:8080")
    assert found["forwarders.second.include.kinds"] == "Committed,JobLineage"


def test_keys_of_the_file_are_the_flags_of_run() -> None:
    node = dict(walk())["forward", "run"]
    assert isinstance(node, Leaf)
    declared = leaf_parser(("forward", "run"), node.load()).declared.keys()
    assert declared - {"output", "config", "print-config"} == set(ForwardFlags.further_keys) - {"forwarders"}


class TestErrors:
    @pytest.fixture
    def fails(self, capsys: pytest.CaptureFixture[str], file: Path) -> Callable[..., str]:
        def failing(*words: str, code: int = 78) -> str:
            capsys.readouterr()
            assert main(["forward", *words]) == code
            return capsys.readouterr().err

        return failing

    def test_of_an_unknown_forwarder(self, fails: Callable[..., str], file: Path) -> None:
        assert "did you mean 'first'?" in fails("run", "frist", "--config", str(file))
        assert "did you mean 'openlineage'?" in fails("test", "openlinage")
        assert "--option mine.type=package.module:Class" in fails("run", "mine", "--bus", "log:/nowhere")

    def test_of_none(self, fails: Callable[..., str]) -> None:
        assert "which forwarder?" in fails("run", "--bus", "log:/nowhere")

    def test_of_a_key(self, fails: Callable[..., str], file: Path) -> None:
        for text, words in (
            ("untilend = true\n", "did you mean 'until-end'?"),
            ("[forwarders]\nfirst = 1\n", "write [forwarders.first]"),
            ("[forwarders.first]\ntyp = 'x'\ntype = 'openlineage'\nurl='http://a'\n", "there is no key typ"),
            (f"[forwarders.first]\ntype = '{TYPE}'\nfil = 'a'\n", "no option fil"),
            (f"[forwarders.first]\ntype = '{TYPE}'\nbatch = 0\n", "forwarders.first.batch"),
            ("[forwarders.first]\nfile = 2020-01-01\n", "forwarders.first.file: write a text"),
        ):
            file.write_text(text)
            assert words in fails("run", "--bus", "log:/nowhere", "--config", str(file)), text

    def test_of_an_option(self, capsys: pytest.CaptureFixture[str]) -> None:
        with pytest.raises(SystemExit):
            main(["forward", "test", "first", "--option", "url=x"])
        assert "isn't NAME.KEY=VALUE" in capsys.readouterr().err

    def test_of_a_variable(self, fails: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("HEADWATER_FORWARD_OPTION", "a.b=c")
        assert "did you mean 'HEADWATER_FORWARD_OPTIONS'?" in fails("status")

    def test_of_a_log_that_is_not_there(self, fails: Callable[..., str], file: Path) -> None:
        assert "name the directory that drivers write to" in fails(
            "run", "--config", str(file), "--bus", "log:/nowhere/else"
        )

    def test_of_a_state_that_is_in_use(self, fails: Callable[..., str], file: Path, tmp_path: Path) -> None:
        lock = ForwarderLock(tmp_path / "state", "second")
        assert lock.acquire()
        assert "forwarder second runs already" in fails("run", "--config", str(file))
        lock.release()
        assert main(["forward", "run", "--config", str(file)]) == 0, "the first one's lock was left behind"

    def test_of_a_forwarder_that_never_ran(self, fails: Callable[..., str], file: Path, tmp_path: Path) -> None:
        assert "no forwarder ever ran" in fails("status", "first", "--state", str(tmp_path / "empty"))
        assert main(["forward", "run", "first", "--config", str(file)]) == 0

    @pytest.mark.parametrize(
        ("words", "answer"),
        [
            (("list", "--of", "forwarder:firs"), "did you mean 'first'?"),
            (("list", "--of", "forwarder:first", "--state", "/nowhere/empty"), "no forwarder ever ran"),
            (("show", "--of", "forwarder:first", "7"), "there is no dead letter 7"),
            (("retry", "--of", "forwarder:first", "7"), "there is no dead letter 7"),
            (("retry", "--of", "forwarder:first"), "or say --all"),
        ],
    )
    def test_of_dead_letters(
        self, capsys: pytest.CaptureFixture[str], file: Path, words: tuple[str, ...], answer: str
    ) -> None:
        assert main(["forward", "run", "first", "--config", str(file)]) == 0
        assert main(["dead-letter", *words, "--config", str(file)]) != 0
        assert answer in capsys.readouterr().err

    def test_of_a_plan_without_a_table(self, fails: Callable[..., str], file: Path) -> None:
        assert "Name a table by --table" in fails("plan", "first", "--config", str(file))
