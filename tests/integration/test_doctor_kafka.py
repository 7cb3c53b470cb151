"""`headwater doctor` before real brokers: what it says of each thing that can be wrong, and that its advice helps."""

from __future__ import annotations

import contextlib
import json
import re
import shlex
import socket
import subprocess
import threading
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AclOperation, AdminClient

from headwater.cli import doctor, main
from headwater.cli.exits import Exit
from headwater.events import Closed
from headwater.events.avro import Codec
from headwater.local import Service
from headwater.local.java import java
from headwater.local.kafka import kafka_libraries
from headwater.publishers.kafka import network
from tests.kit.kafka.secured import SecuredBroker, new_authority, secured_broker
from tests.kit.ports import refusing_port
from tests.kit.topics import APPEND_TIME, create_topic, messages_of

pytestmark = [pytest.mark.kafka, pytest.mark.sample(3)]
SECONDS = 60.0
SECRET = "planted-5ecret"

Found = dict[str, Any]
Examine = Callable[..., tuple[int, list[Found]]]


@pytest.fixture
def examine(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Examine:
    """The exit code, and what was found of the kafka listener; `producer` is librdkafka's settings."""
    monkeypatch.setattr(doctor, "check_installation", lambda _: iter(()))

    def run(address: str, producer: dict[str, str] | None = None, **keys: str) -> tuple[int, list[Found]]:
        conf = {
            "enabled": "true",
            "listeners": "kafka",
            "spool.dir": str(tmp_path / "spools"),
            "kafka.bootstrap.servers": address,
            **{f"kafka.{key.replace('_', '.')}": value for key, value in keys.items()},
            **{f"kafka.producer.{key}": value for key, value in (producer or {}).items()},
        }
        given = [each for key, value in conf.items() for each in ("--conf", f"spark.headwater.{key}={value}")]
        code = main(["--output", "json", "doctor", *given])
        captured = capsys.readouterr()
        assert SECRET not in captured.out + captured.err
        found = json.loads(captured.out)["findings"]
        return code, [each for each in found if each["chapter"] == "listener kafka"]

    return run


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBroker]:
    with secured_broker(tmp_path_factory.mktemp("secured")) as broker:
        yield broker


@pytest.fixture
def topic(kafka: Service) -> str:
    """A name that nobody else has."""
    return f"doctor-{uuid.uuid4().hex[:8]}"


def not_fine(findings: list[Found]) -> list[tuple[str, str]]:
    return [(each["step"], each["status"]) for each in findings if each["status"] != "ok"]


def of(findings: list[Found], step: str) -> Found:
    (found,) = [each for each in findings if each["step"] == step]
    return found


def new_topic(client: AdminClient, name: str, partitions: int = 6, **settings: str) -> None:
    create_topic(client, name, partitions, {**APPEND_TIME, **{k.replace("_", "."): v for k, v in settings.items()}})


def contents(address: str, topic: str) -> list[tuple[str, bytes]]:
    """The kind that each message says it is, and its bytes."""
    found: list[tuple[str, bytes]] = []
    for message in messages_of(address, topic):
        kind = dict(message.headers() or [])["kind"]
        assert isinstance(kind, bytes)
        found.append((kind.decode(), message.value() or b""))
    return found


def run_command(command: str) -> None:
    """A command of Kafka's, as it was printed, by the program that its script starts."""
    script, *arguments = shlex.split(command)
    assert script == "kafka-configs.sh"
    program = [str(java().executable), "-cp", f"{kafka_libraries()}/*", "kafka.admin.ConfigCommand", *arguments]
    subprocess.run(program, check=True, capture_output=True, timeout=60)


def test_an_open_broker_and_a_topic_that_is_made(kafka: Service, topic: str, examine: Examine) -> None:
    code, findings = examine(kafka.address, topic=topic)
    assert code == Exit.DONE
    assert not_fine(findings) == [("settings", "warning")], "of one broker there is one replica"
    assert "one replica" in of(findings, "settings")["message"]
    assert [each["step"] for each in findings] == [
        *("process", "factory", "addresses", "connection", "cluster", "topic"),
        *("settings", "writing", "reading", "clocks"),
    ]
    assert "wasn't there, and is made now" in of(findings, "topic")["message"]
    code, findings = examine(kafka.address, topic=topic)
    assert of(findings, "topic")["message"] == f"{topic} is there, with 6 partitions"
    answer = [value for kind, value in contents(kafka.address, topic)]
    events = [Codec().decode(value) for value in answer]
    assert [type(each) for each in events] == [Closed, Closed], "one each time"
    assert len({each.producer for each in events if isinstance(each, Closed)}) == 2


def test_nobody_there(examine: Examine) -> None:
    with refusing_port() as port:
        code, findings = examine(f"127.0.0.1:{port}")
    assert code == Exit.FAILED
    assert not_fine(findings) == [("connection", "error")]
    assert of(findings, "connection")["message"] == f"127.0.0.1:{port} takes no connection (Connection refused)"


def test_a_name_that_nobody_knows_and_another_server_that_is_there(kafka: Service, examine: Examine) -> None:
    code, findings = examine("nobody.invalid:9092")
    assert (code, not_fine(findings)) == (Exit.FAILED, [("addresses", "error")])
    assert "nobody.invalid isn't known here" in of(findings, "addresses")["message"]
    code, findings = examine(f"nobody.invalid:9092,{kafka.address}", topic="headwater.events")
    assert ("addresses", "warning") in not_fine(findings)
    assert code == Exit.DONE


def test_another_cluster(kafka: Service, examine: Examine) -> None:
    code, findings = examine(kafka.address, cluster_id="AnotherOneEntirely0000")
    assert (code, not_fine(findings)) == (Exit.FAILED, [("cluster", "error")])
    assert "cluster.id names AnotherOneEntirely0000" in of(findings, "cluster")["message"]


def test_a_topic_that_is_missing_and_not_to_be_made(kafka: Service, topic: str, examine: Examine) -> None:
    code, findings = examine(kafka.address, topic=topic, topic_create="false")
    assert (code, not_fine(findings)) == (Exit.FAILED, [("topic", "error")])
    answer = of(findings, "topic")
    assert answer["message"] == f"there is no topic {topic} at {kafka.address}, and topic.create is false"
    assert re.match(rf"kafka-topics\.sh --bootstrap-server {kafka.address} --create --topic {topic} ", answer["advice"])
    assert topic not in AdminClient({"bootstrap.servers": kafka.address}).list_topics(timeout=SECONDS).topics


def test_what_is_doubtful_in_a_topic_is_mended_by_the_commands_that_are_reported(
    kafka: Service, topic: str, examine: Examine
) -> None:
    admin = AdminClient({"bootstrap.servers": kafka.address})
    doubtful = {
        "cleanup.policy": "compact",
        "retention.ms": "3600000",
        "retention.bytes": "1000000",
        "max.message.bytes": "20000",
        "unclean.leader.election.enable": "true",
    }
    create_topic(admin, topic, 6, doubtful)
    code, findings = examine(kafka.address, topic=topic)
    assert code == Exit.FAILED
    doubts = [each for each in findings if each["step"] == "settings"]
    assert {each["message"].split(" ")[0]: each["status"] for each in doubts} == {
        "message.timestamp.type": "warning",
        "cleanup.policy": "error",
        "events": "warning",
        "retention.bytes": "warning",
        "max.message.bytes": "error",
        "there": "warning",
        "unclean.leader.election.enable": "warning",
    }
    assert "kept for 1 hours" in next(each["message"] for each in doubts if each["message"].startswith("events"))
    commands = [each["advice"] for each in doubts if each["advice"].startswith("kafka-configs.sh")]
    assert len(commands) == 6
    settings = [command.rpartition(" ")[2] for command in commands]
    run_command(f"{commands[0].rpartition(' ')[0]} {','.join(settings)}")
    code, findings = examine(kafka.address, topic=topic)
    assert (code, [each["message"] for each in findings if each["status"] != "ok"]) == (
        Exit.DONE,
        ["there is one replica: events are lost with the disk of one broker"],
    )


@pytest.mark.long
def test_more_replicas_in_sync_than_there_are(kafka: Service, topic: str, examine: Examine) -> None:
    new_topic(AdminClient({"bootstrap.servers": kafka.address}), topic, 1, min_insync_replicas="2")
    code, findings = examine(kafka.address, topic=topic)
    assert code == Exit.DONE
    words = [each["message"] for each in findings if each["step"] == "settings"]
    assert words[0].startswith("there is one partition")
    assert words[1] == "min.insync.replicas is 2, and there are 1 replicas: older brokers take nothing then"
    assert "kafka-topics.sh" in next(each["advice"] for each in findings if each["message"] == words[0])
    assert of(findings, "writing")["status"] == "ok", "this one does"


def test_a_wrong_password_is_reported_as_that_and_not_as_silence(secured: SecuredBroker, examine: Examine) -> None:
    secured.set_password("loader", "right")
    code, findings = examine(secured.server.address, secured.client("loader", SECRET))
    assert (code, not_fine(findings)) == (Exit.FAILED, [("authentication", "error")])
    answer = of(findings, "authentication")
    assert "Authentication failed" in answer["message"]
    assert "producer.sasl.password" in answer["advice"]
    assert "the certificate of 127.0.0.1" in of(findings, "TLS")["message"]


@pytest.mark.long
def test_an_authority_that_is_not_known(secured: SecuredBroker, examine: Examine, tmp_path: Path) -> None:
    other = {**secured.client("loader", SECRET), "ssl.ca.location": str(new_authority(tmp_path, "other").certificate)}
    code, findings = examine(secured.server.address, other)
    assert (code, not_fine(findings)) == (Exit.FAILED, [("TLS", "error")])
    answer = of(findings, "TLS")
    assert answer["message"] == f"the certificate of {secured.server.address} isn't accepted: self-signed certificate"
    assert "producer.ssl.ca.location" in answer["advice"]


@pytest.mark.long
def test_a_name_that_is_not_in_the_certificate_and_one_that_ends_soon(tmp_path: Path, examine: Examine) -> None:
    with secured_broker(tmp_path, new_authority(tmp_path, "elsewhere", host="dns:elsewhere", days=5)) as broker:
        admin = broker.client("admin", "admin-secret")
        code, findings = examine(broker.server.address, admin)
        assert (code, not_fine(findings)) == (Exit.FAILED, [("TLS", "error")])
        assert "IP address mismatch" in of(findings, "TLS")["message"]
        assert "by a name in its certificate" in of(findings, "TLS")["advice"]
        code, findings = examine(broker.server.address, {**admin, "ssl.endpoint.identification.algorithm": "none"})
        assert code == Exit.DONE
        assert of(findings, "TLS")["status"] == "warning"
        assert "signed by elsewhere, valid until" in of(findings, "TLS")["message"]


def test_protocols_that_are_not_those_of_the_port(
    kafka: Service, secured: SecuredBroker, examine: Examine, tmp_path: Path
) -> None:
    code, findings = examine(kafka.address, secured.client("loader", SECRET))
    assert (code, not_fine(findings)) == (Exit.FAILED, [("TLS", "error")])
    assert of(findings, "TLS")["message"] == f"what listens at {kafka.address} doesn't speak TLS"
    assert "producer.security.protocol=SASL_PLAINTEXT" in of(findings, "TLS")["advice"]
    code, findings = examine(secured.server.address)
    assert (code, not_fine(findings)) == (Exit.FAILED, [("TLS", "error")])
    address = secured.server.address
    assert of(findings, "TLS")["message"] == (
        f"what listens at {address} speaks TLS, and producer.security.protocol is PLAINTEXT"
    )
    assert of(findings, "TLS")["advice"].startswith("producer.security.protocol=SSL")


def granted(command: str) -> tuple[str, str, list[str]]:
    """User, topic and operations of a kafka-acls.sh command."""
    words = shlex.split(command)
    assert words[0] == "kafka-acls.sh"
    after = {flag: words[index + 1] for index, flag in enumerate(words) if flag.startswith("--") and flag != "--add"}
    operations = [words[index + 1] for index, flag in enumerate(words) if flag == "--operation"]
    return after["--allow-principal"].removeprefix("User:"), after["--topic"], operations


def test_rights_that_are_missing_are_reported_one_after_the_other_with_what_grants_them(
    secured: SecuredBroker, examine: Examine
) -> None:
    user, topic = f"user-{uuid.uuid4().hex[:8]}", f"events-{uuid.uuid4().hex[:8]}"
    secured.set_password(user, SECRET)
    admin = secured.admin()
    new_topic(admin, topic)
    client = secured.client(user, SECRET)

    def look() -> list[Found]:
        return examine(secured.server.address, client, topic=topic)[1]

    findings = look()
    assert not_fine(findings) == [("topic", "error")], "it may not even see it"
    assert of(findings, "authentication")["message"] == f"SCRAM-SHA-512, as {user}"
    secured.allow(user, topic, AclOperation.DESCRIBE)
    findings = look()
    assert not_fine(findings) == [("settings", "warning"), ("writing", "error")]
    assert of(findings, "writing")["message"] == f"no right to write to the topic {topic}"
    grant(secured, of(findings, "writing")["advice"])
    findings = look()
    assert not_fine(findings) == [("settings", "warning"), ("reading", "warning")]
    assert of(findings, "writing")["status"] == "ok"
    for step in ("settings", "reading"):
        grant(secured, of(findings, step)["advice"])
    assert [each["message"] for each in look() if each["status"] != "ok"] == [
        "there is one replica: events are lost with the disk of one broker"
    ]


def grant(secured: SecuredBroker, command: str) -> None:
    """Do what the command of kafka-acls.sh says."""
    user, topic, operations = granted(command)
    names = {each.name.replace("_", ""): each for each in AclOperation}
    secured.allow(user, topic, *(names[each.upper()] for each in operations))


@pytest.mark.long
def test_a_topic_that_this_user_may_not_make(secured: SecuredBroker, examine: Examine) -> None:
    user, topic = f"user-{uuid.uuid4().hex[:8]}", f"events-{uuid.uuid4().hex[:8]}"
    secured.set_password(user, SECRET)
    secured.allow(user, topic, AclOperation.DESCRIBE, AclOperation.WRITE)
    code, findings = examine(secured.server.address, secured.client(user, SECRET), topic=topic)
    assert (code, not_fine(findings)) == (Exit.FAILED, [("topic", "error")])
    answer = of(findings, "topic")
    assert "no right to make the topic" in answer["message"]
    assert answer["advice"].startswith("kafka-acls.sh")
    assert "kafka-topics.sh" in answer["advice"]


def test_one_that_takes_connections_and_never_answers(examine: Examine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headwater.publishers.kafka.checks._TIMEOUT_SECONDS", 2.0)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        taken: list[socket.socket] = []
        stopped = threading.Event()
        silent.settimeout(0.1)

        def take() -> None:
            while not stopped.is_set():
                with contextlib.suppress(TimeoutError):
                    taken.append(silent.accept()[0])

        thread = threading.Thread(target=take)
        thread.start()
        code, findings = examine(f"127.0.0.1:{silent.getsockname()[1]}")
        stopped.set()
        thread.join()
        for each in taken:
            each.close()
    assert (code, not_fine(findings)) == (Exit.FAILED, [("cluster", "error")])
    assert "gives no answer" in of(findings, "cluster")["message"]
    assert "is a broker running there" in of(findings, "cluster")["advice"]


def test_bootstrap_servers_are_read_as_librdkafka_reads_them() -> None:
    from headwater.publishers.kafka.config import KafkaConfig

    given = "a:1, SASL_SSL://b.acme.com:2 ,c,[::1]:3,PLAINTEXT://d,"
    servers = network.broker_addresses(KafkaConfig(bootstrap_servers=given))
    assert [str(each) for each in servers] == ["a:1", "b.acme.com:2", "c:9092", "[::1]:3", "d:9092"]
