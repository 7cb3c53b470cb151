"""`headwater run --thrift`: two users at a time by beeline, Hive's own JDBC client. What is true is what they said."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest

from tests.kit.drivers import SECONDS, Ended, Place
from tests.kit.spark.hosting import Served, configure, serving, sessions
from tests.kit.spark.java_programs import java

pytestmark = [pytest.mark.slow, pytest.mark.spark]
BEELINE = "org.apache.hive.beeline.BeeLine"
USERS = ("anna", "ben")
SAME = "INSERT INTO mine SELECT 7"
"""Both say this, word for word, at about the same time; each in a database of their own."""
COUNT = "SELECT count(*) FROM (SELECT * FROM of_anna.mine UNION ALL SELECT * FROM of_ben.mine)"


@pytest.fixture(scope="module")
def reported(tmp_path_factory: pytest.TempPathFactory, java_home: Path) -> Ended:
    place = Place(tmp_path_factory.mktemp("thrift"), java_home, enabled=False)
    in_memory = {
        "spark.sql.catalogImplementation": "in-memory",
        "spark.hadoop.hive.server2.thrift.bind.host": "127.0.0.1",
    }
    configure(place, (), {**in_memory, "spark.app.name": "server"})
    with serving(place, "--thrift", ending=signal.SIGINT) as served:
        assert served.address == f"jdbc:hive2://127.0.0.1:{served.port}/"
        made = [
            statement
            for user in USERS
            for statement in (f"CREATE DATABASE of_{user}", f"CREATE TABLE of_{user}.mine (n INT) USING parquet")
        ]
        _wait(_beeline(served, java_home, "anna", *made))
        running = [
            _beeline(
                served,
                java_home,
                user,
                f"USE of_{user}",
                f"CREATE TABLE t_{user} (n INT) USING parquet",
                f"SET spark.headwater.job.name = of {user}",
                f"INSERT INTO t_{user} SELECT 1",
                SAME,
                f"INSERT INTO t_{user} SELECT nope FROM mine",
                COUNT,
            )
            for user in USERS
        ]
        for each in running:
            _wait(each)
        counted = _wait(_beeline(served, java_home, "carol", COUNT))
        assert "| 2 " in counted.replace("\n", " "), "each statement ran once"
    assert served.ended is not None
    return served.ended


def _beeline(served: Served, java_home: Path, user: str, *statements: str) -> subprocess.Popen[str]:
    words = [word for statement in statements for word in ("-e", statement)]
    flags = ["-u", served.address, "-n", user, "--silent=true", "--force=true"]
    command = java(java_home, BEELINE, *flags, *words)
    return subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def _wait(process: subprocess.Popen[str]) -> str:
    with process:
        return process.communicate(timeout=SECONDS)[0]


@pytest.mark.long
def test_each_statement_is_reported_once_and_is_its_users(reported: Ended) -> None:
    written = [(e["user"], e["job"]["name"], e["outputs"][0]["table"]) for e in reported.of("Committed")]
    committed = [(user, job, table["database"], table["table"]) for user, job, table in written]
    assert sorted(committed) == [
        ("anna", "of anna", "of_anna", "mine"),
        ("anna", "of anna", "of_anna", "t_anna"),
        ("ben", "of ben", "of_ben", "mine"),
        ("ben", "of ben", "of_ben", "t_ben"),
    ]
    assert len({e["operation"] for e in reported.of("Committed")}) == len(committed)
    made = [(e["user"], e["identifier"]["table"]) for e in reported.of("CreateTable")]
    assert sorted(made) == [("anna", "mine"), ("anna", "mine"), ("anna", "t_anna"), ("ben", "t_ben")]
    assert reported.of("Gap") == []


@pytest.mark.long
def test_a_session_is_a_run_that_ends_when_it_is_closed(reported: Ended) -> None:
    began = sessions(reported)
    assert sorted(e["user"] for e in began) == ["anna", "anna", "ben"], "carol did nothing but read"
    assert {e["tags"]["client.server"] for e in began} == {"thrift"}
    runs = {e["run"]: e["user"] for e in began}
    assert all(runs[e["run"]] == e["user"] for e in [*reported.of("Committed"), *reported.of("StatementFailed")])
    assert sorted(reported.statuses()) == [
        "server KILLED",
        "server.anna ENDED",
        "server.anna ENDED",
        "server.ben ENDED",
    ]


@pytest.mark.long
def test_what_fails_before_it_runs_is_reported(reported: Ended) -> None:
    failed = {e["user"]: e for e in reported.of("StatementFailed")}
    assert set(failed) == set(USERS)
    assert len(reported.of("StatementFailed")) == len(USERS)
    for user, event in failed.items():
        assert [sink["opaque"] for sink in event["outputs"]] == [f"t_{user}"]
        assert event["error"]["condition"] == "UNRESOLVED_COLUMN.WITH_SUGGESTION"
        assert "Relation" not in event["error"]["message"], "without the plan"


@pytest.mark.long
def test_ctrl_c_stops_it(reported: Ended) -> None:
    assert reported.code == -signal.SIGINT, reported.err
    assert reported.of("JobStatusChanged")[-1]["signal"] == signal.SIGINT
    assert reported.kinds()[-1] == "Closed"
    assert "Traceback" not in reported.err
