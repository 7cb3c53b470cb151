"""`headwater conformance`: what its commands print, write and answer, and how they end."""

from __future__ import annotations

import gzip
import json
import re
import signal
import subprocess
import sys
import threading
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from headwater.cli import main
from headwater.cli.exits import Exit
from headwater.conformance import load_scenario
from headwater.conformance.collecting import EventCollector
from tests.kit.conformance.perfect_events import Documents, observe, perfect_events

CTAS = load_scenario("ctas")


@pytest.fixture
def played(tmp_path: Path) -> Path:
    """A directory with the observation of one scenario."""
    place = tmp_path / "played" / "observed"
    place.mkdir(parents=True)
    (place / "ctas.json").write_text(observe("ctas", CTAS).model_dump_json())
    return place.parent


def judged(played: Path, events: Documents, capsys: pytest.CaptureFixture[str], *more: str) -> tuple[int, Any]:
    file = played / "events.ndjson"
    file.write_text("".join(f"{json.dumps(each)}\n" for each in events))
    code = main(["conformance", "judge", "--events", str(file), "--observed", str(played), "-o", "json", *more])
    return code, json.loads(capsys.readouterr().out)


def test_what_is_true_is_seen(played: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, answer = judged(played, perfect_events(CTAS), capsys, "--strict")
    assert code == Exit.DONE
    assert {each["verdict"] for each in answer["facts"]} == {"seen"}
    assert [each["scenario"] for each in answer["scores"]] == ["ctas", "all"]
    assert answer["scores"][1]["seen"] == len(answer["facts"]) > 15


def test_what_is_wrong_fails_and_what_is_missed_fails_where_it_is_asked(
    played: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    events = perfect_events(CTAS)
    del events[2]["inputs"][0]["facets"]["version"]
    assert judged(played, events, capsys)[0] == Exit.DONE
    assert judged(played, events, capsys, "--strict")[0] == Exit.FAILED
    events[2]["inputs"][0]["facets"]["version"] = {"datasetVersion": "1"}
    code, answer = judged(played, events, capsys)
    assert code == Exit.FAILED
    (wrong,) = [each for each in answer["facts"] if each["verdict"] == "wrong"]
    assert wrong["fact"] == "version of orders read"
    assert wrong["reason"].startswith("version 1 reported, true is ")


def test_people_see_what_was_not_seen(played: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = played / "events.json"
    file.write_text("[]")
    assert main(["conformance", "judge", "--events", str(file), "--observed", str(played), "--strict"]) == Exit.FAILED
    out = capsys.readouterr().out
    assert "silent   ctas" in out
    assert "not played, so not judged: cached_dataframe, " in out


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ("{}", "is no observation of a scenario: scenario: Field required"),
        ("hello", "is no observation of a scenario: the file: Invalid JSON"),
    ],
)
def test_an_observation_that_is_none_is_named(
    content: str, fault: str, played: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (played / "observed" / "merge.json").write_text(content)
    arguments = ["conformance", "judge", "--events", str(played / "observed"), "--observed", str(played)]
    assert main(arguments) == Exit.CONFIGURATION
    assert fault in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"versions": {}}, "has no version orders@1: play the scenario again"),
        ({"steps": {}}, "has no step ctas: play the scenario again"),
    ],
)
def test_an_observation_that_lacks_something_is_an_error(
    change: dict[str, object], fault: str, played: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = played / "observed" / "ctas.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | change))
    (played / "events.json").write_text(json.dumps(perfect_events(CTAS)))
    arguments = ["conformance", "judge", "--events", str(played / "events.json"), "--observed", str(played)]
    assert main(arguments) == Exit.CONFIGURATION
    assert re.search(fault, capsys.readouterr().err)


def test_a_scenario_that_broke_off_is_not_judged_and_the_others_are(
    played: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = json.loads((played / "observed" / "ctas.json").read_text())
    broken = whole | {"scenario": "merge", "steps": {}, "error": "Traceback\nValueError: no table"}
    (played / "observed" / "merge.json").write_text(json.dumps(broken))
    file = played / "events.ndjson"
    file.write_text(json.dumps(perfect_events(CTAS)))
    assert main(["conformance", "judge", "--events", str(file), "--observed", str(played)]) == Exit.FAILED
    out = capsys.readouterr().out
    assert "merge broke off when it was played, so it isn't judged: ValueError: no table" in out
    assert re.search(r"^  ctas +\d+ +\d+ +0 +0 +0$", out, re.MULTILINE)


def test_a_directory_without_observations_says_where_they_come_from(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["conformance", "judge", "--events", "x", "--observed", str(tmp_path)]) == Exit.CONFIGURATION
    assert "`headwater conformance script DIR` writes run.py" in capsys.readouterr().err


def test_what_has_to_be_named_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    for command in (["judge"], ["listen"]):
        with pytest.raises(SystemExit, match=str(int(Exit.USAGE))):
            main(["conformance", *command])
    assert "--to names the file" in capsys.readouterr().err


def test_show_has_the_truth_and_the_script(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["conformance", "show", "time_travel"]) == Exit.DONE
    out = capsys.readouterr().out
    assert "reads   orders@1" in out
    assert "VERSION AS OF" in out


def test_scripts_are_written_into_a_new_directory_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = tmp_path / "scenarios"
    assert main(["conformance", "script", str(place), "-o", "json"]) == Exit.DONE
    assert json.loads(capsys.readouterr().out)["judge"].startswith("headwater conformance judge ")
    assert len(list(place.glob("*.py"))) == 27
    assert main(["conformance", "script", str(place)]) == Exit.CONFIGURATION
    assert "name a new directory" in capsys.readouterr().err


def post(port: int, body: bytes, **headers: str) -> int:
    connection = HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("POST", "/api/v1/lineage", body, headers)
    status = connection.getresponse().status
    connection.close()
    return status


def test_events_over_http_are_lines_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "events.ndjson"
    with EventCollector("127.0.0.1", 0, file) as collector:
        threads = [
            threading.Thread(target=post, args=(collector.port, json.dumps({"n": number}, indent=2).encode()))
            for number in range(8)
        ]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        assert post(collector.port, gzip.compress(b'[{"n": 8}, {"n": 9}]'), **{"Content-Encoding": "gzip"}) == 201
        assert post(collector.port, b"{") == 400
        assert post(collector.port, b"x", **{"Content-Encoding": "gzip"}) == 400
        assert post(collector.port, b"") == 400
        assert post(collector.port, b"{}", **{"Content-Length": "many"}) == 411
        assert post(collector.port, b"{}", **{"Content-Length": str(1 << 40)}) == 413
        assert collector.count == 10
    assert sorted(json.loads(line)["n"] for line in file.read_text().splitlines()) == list(range(10))


def test_events_come_in_chunks_too(tmp_path: Path) -> None:
    """Clients that compress what they send do so."""
    file = tmp_path / "events.ndjson"
    data = gzip.compress(json.dumps({"n": "x" * 5000}).encode())
    with EventCollector("127.0.0.1", 0, file) as collector:
        connection = HTTPConnection("127.0.0.1", collector.port, timeout=60)
        for _ in range(2):
            headers = {"Content-Encoding": "gzip", "Transfer-Encoding": "chunked"}
            connection.request("POST", "/", iter([data[:7], data[7:]]), headers, encode_chunked=True)
            answer = connection.getresponse()
            answer.read()
            assert answer.status == 201
        connection.close()
    assert [json.loads(line)["n"] for line in file.read_text().splitlines()] == ["x" * 5000] * 2


def test_a_port_that_is_taken_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with EventCollector("127.0.0.1", 0, tmp_path / "a") as collector:
        address = f"127.0.0.1:{collector.port}"
        code = main(["conformance", "listen", "--address", address, "--to", str(tmp_path / "b")])
    assert code == Exit.CONFIGURATION
    assert f"{address} can't be served" in capsys.readouterr().err


@pytest.mark.slow
def test_listening_ends_when_it_is_asked_to(tmp_path: Path) -> None:
    file = tmp_path / "events.ndjson"
    command = [
        sys.executable,
        "-m",
        "headwater.cli",
        "conformance",
        "listen",
        "--address",
        "127.0.0.1:0",
        "--to",
        str(file),
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        first = process.stdout.readline()
        assert post(int(first.partition("127.0.0.1:")[2].partition(";")[0]), b'{"n": 1}') == 201
        process.send_signal(signal.SIGTERM)
        rest = process.stdout.read()
        assert process.wait(60) == Exit.DONE
    assert "1 events are in" in rest
    assert file.read_text() == '{"n": 1}\n'
