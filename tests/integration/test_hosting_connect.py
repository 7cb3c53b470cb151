"""`headwater run --connect`: two clients at a time, of different users, into one Iceberg table: whose each commit is.

What is true comes from the clients (which operation each statement was) and from Iceberg's own metadata (whose rows a
snapshot added).
"""

from __future__ import annotations

import json
import signal
import socket
import subprocess
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from openlineage.client.serde import Serde

import headwater.events
from headwater.events.kinds import KINDS
from headwater.forwarders.api import NoLineage
from headwater.forwarders.openlineage.mapping import openlineage_events
from tests.kit.drivers import BIN, PYTHON, Ended, Event, Place
from tests.kit.spark.driver import ICEBERG
from tests.kit.spark.hosting import CLIENT, CONNECT, Served, configure, serving, sessions

pytestmark = [pytest.mark.slow, pytest.mark.spark, pytest.mark.sample(1, keep=("test_each_commit_is_its_users",))]
TABLE = "ice.shop.orders"
USERS = ("anna", "ben_Session_x")
"""The second one looks like what stands behind it in Connect's job tags."""
EACH = 4
WHOSE = f"""
    SELECT DISTINCT e.snapshot_id, t.who, t.n FROM (SELECT who, n, _file FROM {TABLE}) t
    JOIN {TABLE}.entries e ON e.data_file.file_path = t._file
"""


class Client:
    def __init__(self, served: Served, user: str | None) -> None:
        self.user = user
        address = f"sc://127.0.0.1:{served.port}/" + (f";user_id={user}" if user else "")
        self._process = subprocess.Popen(
            [PYTHON, "-W", "ignore", CLIENT, address], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.session: str = self._answer()["session"]

    def send(self, **wanted: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(wanted) + "\n")
        self._process.stdin.flush()

    def answer(self) -> dict[str, Any]:
        return self._answer()

    def run(self, sql: str) -> dict[str, Any]:
        self.send(sql=sql)
        return self._answer()

    def close(self) -> None:
        self._process.communicate(timeout=60)

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return answer


@dataclass
class Story:
    """What clients did."""

    sessions: dict[str, str] = field(default_factory=dict)
    inserts: dict[tuple[str, int], str] = field(default_factory=dict)
    """By user and number: the operation."""
    whose: dict[int, tuple[str, int]] = field(default_factory=dict)
    """By snapshot."""
    failed: dict[str, str] = field(default_factory=dict)
    made: str = ""
    reported: Ended | None = None

    @property
    def events(self) -> list[Event]:
        assert self.reported is not None
        return self.reported.events

    def of(self, kind: str) -> list[Event]:
        assert self.reported is not None
        return self.reported.of(kind)


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory, java_home: Path) -> Story:
    place = Place(tmp_path_factory.mktemp("connect"), java_home, enabled=False)
    conf = {**ICEBERG.conf, "spark.sql.catalog.ice.cache-enabled": "false", "spark.app.name": "server"}
    configure(place, (*CONNECT, *ICEBERG.packages), conf)
    story = Story()
    with serving(place, "--connect") as served:
        assert served.address.endswith(f":{served.port}")
        with clients(served, *USERS, None) as (anna, ben, nobody):
            story.sessions = {USERS[0]: anna.session, USERS[1]: ben.session}
            _make(story, anna)
            _insert_at_the_same_time(story, anna, ben)
            _fail(story, anna)
            nobody.run(f"SELECT count(*) FROM {TABLE}")
            story.whose = {snapshot: (who, n) for snapshot, who, n in anna.run(WHOSE)["rows"]}
    story.reported = served.reported()
    return story


@contextmanager
def clients(served: Served, *users: str | None) -> Generator[list[Client], None, None]:
    with ExitStack() as stack:
        made = [Client(served, user) for user in users]
        for each in made:
            stack.callback(each.close)
        yield made


def _make(story: Story, anna: Client) -> None:
    assert anna.run("CREATE DATABASE ice.shop")["rows"] == []
    (story.made,) = anna.run(f"CREATE TABLE {TABLE} (who STRING, n INT) USING iceberg")["operations"][:1]


def _insert_at_the_same_time(story: Story, *both: Client) -> None:
    for each in both:
        each.run(f"SET spark.headwater.job.name = of {each.user}")
    for n in range(EACH):
        for each in both:
            each.send(sql=f"INSERT INTO {TABLE} VALUES ('{each.user}', {n})")
        for each in both:
            assert each.user is not None
            story.inserts[each.user, n] = each.answer()["operations"][0]


def _fail(story: Story, anna: Client) -> None:
    tries = {
        "no table": "INSERT INTO ice.shop.nowhere VALUES ('geheim4711')",
        "no column": f"INSERT INTO {TABLE} SELECT nope, 1 FROM {TABLE}",
        "no column to read": f"SELECT nope FROM {TABLE}",
        "while it runs": f"INSERT INTO {TABLE} SELECT raise_error('no'), 1",
    }
    for name, sql in tries.items():
        answer = anna.run(sql)
        assert "error" in answer, answer
        story.failed[name] = answer["operations"][0]
    assert "error" not in anna.run("CREATE TABLE spark_catalog.default.plain (id INT) USING parquet")
    assert "error" in anna.run("UPDATE spark_catalog.default.plain SET id = 1"), "it fails in planning"
    anna.send(save="shop.t", column="nope")
    answer = anna.answer()
    assert "error" in answer, answer
    story.failed["no column to save"] = answer["operations"][0]


def test_each_commit_is_its_users(story: Story) -> None:
    committed = story.of("Committed")
    assert len(committed) == len(USERS) * EACH
    runs = {event["user"]: event["run"] for event in sessions(story.reported)} if story.reported else {}
    for event in committed:
        who, n = story.whose[event["outputs"][0]["snapshot"]]
        assert (event["user"], event["operation"]) == (who, story.inserts[who, n])
        assert event["job"]["name"] == f"of {who}"
        assert event["parent_job"]["name"] == f"server.{who}"
        assert event["run"] == runs[who]


def test_a_session_that_does_something_is_a_run(story: Story) -> None:
    assert story.reported is not None
    began = {event["user"]: event for event in sessions(story.reported)}
    assert set(began) == set(USERS), "who reads only isn't recorded"
    application = story.of("JobStarted")[0]
    assert application["scope"] == "APPLICATION"
    for who, event in began.items():
        assert event["parent_run"] == application["run"]
        assert event["job"]["name"] == f"server.{who}"
        assert event["tags"] == {"client.server": "connect", "client.session": story.sessions[who]}


def test_ddl_has_its_user_too(story: Story) -> None:
    made = story.of("CreateTable")[0]
    assert (made["user"], made["operation"]) == ("anna", story.made)


def test_what_fails_before_it_runs_is_reported_if_it_would_have_written(story: Story) -> None:
    of_nobody = [event for event in story.of("StatementFailed") if "operation" not in event]
    assert of_nobody == [], of_nobody
    failed = {event["operation"]: event for event in story.of("StatementFailed") if event not in of_nobody}
    assert len(failed) == len(story.of("StatementFailed")) - len(of_nobody), "each once"
    assert set(failed) == {op for name, op in story.failed.items() if name != "no column to read"}
    assert {event["user"] for event in failed.values()} == {"anna"}
    no_table = failed[story.failed["no table"]]
    assert no_table["outputs"][0]["table"] == {"catalog": "ice", "database": "shop", "table": "nowhere"}
    assert no_table["error"]["condition"] == "TABLE_OR_VIEW_NOT_FOUND"
    assert failed[story.failed["no column"]]["outputs"][0]["table"]["table"] == "orders"
    assert failed[story.failed["no column to save"]]["outputs"][0]["opaque"] == "shop.t"
    assert failed[story.failed["while it runs"]]["statement"] is not None, "Spark shows that one by itself"
    assert "geheim4711" not in json.dumps(story.events)


def test_openlineage_has_each_statement_under_a_run_of_the_job_that_it_names(story: Story) -> None:
    """Also what failed before it ran, which has no job but its session's."""
    jobs = {event["run"]: event["job"]["name"] for event in story.of("JobStarted")}
    parents = [
        facets["parent"]
        for event in (*story.of("Committed"), *story.of("StatementFailed"))
        for message in openlineage_events(_as_event(event), NoLineage())
        for facets in [Serde.to_dict(message)["run"]["facets"]]
    ]
    assert len(parents) > 2 * len(USERS) * EACH
    for parent in parents:
        assert jobs[parent["run"]["runId"]] == parent["job"]["name"] in {f"server.{who}" for who in USERS}


def _as_event(reported: Event) -> headwater.events.Event:
    """What is None was left out when it was written."""
    refs = {key: [{"dataset": None, **each} for each in reported[key]] for key in ("inputs", "outputs")}
    return KINDS[reported["kind"]].model_validate_json(json.dumps(reported | refs))


def test_a_server_that_is_stopped_was_killed_by_the_signal(story: Story) -> None:
    assert story.reported is not None
    assert story.reported.code == -signal.SIGTERM, story.reported.err
    assert sorted(story.reported.statuses()) == sorted(["server KILLED", *(f"server.{who} KILLED" for who in USERS)])
    assert story.of("JobStatusChanged")[-1]["signal"] == signal.SIGTERM
    assert story.reported.kinds()[-1] == "Closed"
    assert story.of("Gap") == []
    assert "Traceback" not in story.reported.err


@pytest.mark.long
def test_a_server_that_cannot_be_had_is_one_clear_error(place: Place) -> None:
    configure(place, CONNECT, {"spark.app.name": "server"})
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        local = ["--conf", "spark.connect.grpc.binding.address=127.0.0.1"]
        ended = place.run(BIN / "headwater", "run", "--connect", "--port", port, *local)
    assert ended.code == 78, ended.err
    assert f"Spark Connect can't listen on 127.0.0.1:{port} (spark.connect.grpc.binding.port): " in ended.err
    assert "Traceback" not in ended.err
    assert ended.statuses() == ["server FAILED"]


@pytest.mark.long
@pytest.mark.spark3
def test_where_connect_is_not_on_the_class_path_it_is_told_how_it_gets_there(place: Place) -> None:
    ended = place.run(BIN / "headwater", "run", "--connect")
    assert ended.code == 78, ended.err
    package = f"org.apache.spark:spark-connect_2.12:{version('pyspark')}"
    assert f"Spark Connect isn't on the class path: add -- --packages {package}" in ended.err
    assert ended.events == []


@pytest.fixture
def place(tmp_path: Path, java_home: Path) -> Place:
    return Place(tmp_path, java_home, enabled=False)
