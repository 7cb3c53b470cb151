"""What a driver's configuration says, and what is said about what is wrong in it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.events.health import Heartbeat
from headwater.events.identity import Namespaces
from headwater.events.jobs import LineageRetention
from headwater.journal import Fsync
from headwater.listeners.misspellings import edit_distance, find_misspellings
from headwater.listeners.settings import Settings, read_settings, spool_directory
from tests.kit.bus.scripts import Hearing, bus_of


def read(**keys: str) -> tuple[Settings, list[str]]:
    """The settings of these keys, `_` for a dot, and the faults as texts."""
    return read_all({key.replace("_", "."): value for key, value in keys.items()})


def read_all(keys: dict[str, str]) -> tuple[Settings, list[str]]:
    settings, faults = read_settings({f"spark.headwater.{key}": value for key, value in keys.items()})
    return settings, [str(fault) for fault in faults]


def test_nothing_given_is_off_and_has_no_fault() -> None:
    settings, faults = read_settings({"spark.app.name": "x", "spark.headwaters": "another's"})
    assert not settings.enabled
    assert settings == Settings(listeners=("log",))
    assert faults == ()


def test_where_nobody_is_named_a_log_is_kept_and_nothing_where_that_is_nobody() -> None:
    assert read_all({})[0].listener_names == ("log",)
    assert read_all({"listeners": ""})[0].listener_names == ()
    assert read_all({"job.listeners": "console"})[0].listener_names == ("console",)


def test_the_defaults_are_those_that_are_promised() -> None:
    settings = Settings()
    assert (settings.spool_fsync, settings.spool_fsync_interval) == (Fsync.INTERVAL, 1.0)
    assert (settings.spool_max_bytes, settings.spool_handover) == (1 << 30, None)
    assert (settings.lineage_repeat, settings.job_namespace) == (3600.0, "default")
    assert (settings.capture_reads, settings.capture_sql, settings.capture_hooks) == (False, False, "auto")


EVERY_KEY: Final = {
    "enabled": "true",
    "validating": "true",
    "listeners": "kafka, audit=mycompany.audit:AuditFactory",
    "catalog.listeners": "changes=log",
    "job.listeners": "kafka2=kafka",
    "job.name": "orders_etl",
    "job.namespace": "prod",
    "job.code.version": "4f1c2ab",
    "job.heartbeat": "5 min",
    "spool.dir": "/spools",
    "spool.fsync": "always",
    "spool.fsync.interval": "5 s",
    "spool.max.bytes": "512m",
    "spool.linger": "2 min",
    "spool.handover": "/shared",
    "spool.handover.timeout": "1 min",
    "capture.reads": "true",
    "capture.sql": "true",
    "capture.hooks": "off",
    "capture.wait": "3s",
    "capture.queue.count": "5",
    "capture.queue.bytes": "1m",
    "capture.plan.bytes": "2m",
    "redaction.keep": "team.token",
    "redaction.key.file": "/keys/redaction",
    "metrics.port": "9464",
    "metrics.host": "metrics.acme.com",
    "metrics.file": "/textfile",
    "metrics.file.interval": "30 s",
    "read.consistent": "true",
    "read.consistent.otherwise": "wait 60s",
    "read.consistent.allowed": "lake.ref.*, x",
    "read.consistent.timeout": "2 s",
    "read.consistent.max.age": "0 s",
    "read.branch.versions": "true",
    "lineage.repeat": "10 min",
    "lineage.on-job-end": "delete-table",
    "namespaces.brokers": "k1,k2",
    "tags.team": "sales",
    "tags.cost.centre": "7",
    "parent.namespace": "airflow",
    "parent.name": "nightly.orders",
    "parent.run": "manual__1",
    "parent.root.namespace": "airflow",
    "parent.root.name": "nightly",
    "parent.root.run": "r",
}
THEIR_VALUES: Final = {
    "enabled": True,
    "validating": True,
    "catalog_listeners": ("changes=log",),
    "job_listeners": ("kafka2=kafka",),
    "job_name": "orders_etl",
    "job_namespace": "prod",
    "job_code_version": "4f1c2ab",
    "job_heartbeat": 300.0,
    "spool_dir": Path("/spools"),
    "spool_fsync": Fsync.ALWAYS,
    "spool_fsync_interval": 5.0,
    "spool_max_bytes": 512 << 20,
    "spool_linger": 120.0,
    "spool_handover": "/shared",
    "spool_handover_timeout": 60.0,
    "capture_reads": True,
    "capture_sql": True,
    "capture_hooks": "off",
    "capture_wait": 3.0,
    "capture_queue_count": 5,
    "capture_queue_bytes": 1 << 20,
    "capture_plan_bytes": 2 << 20,
    "redaction_keep": "team.token",
    "redaction_key_file": Path("/keys/redaction"),
    "metrics_port": 9464,
    "metrics_host": "metrics.acme.com",
    "metrics_file": Path("/textfile"),
    "metrics_file_interval": 30.0,
    "read_consistent": True,
    "read_consistent_otherwise": "wait 60s",
    "read_consistent_allowed": ("lake.ref.*", "x"),
    "read_consistent_timeout": 2.0,
    "read_consistent_max_age": 0.0,
    "read_consistent_store": None,
    "read_branch_versions": True,
    "lineage_repeat": 600.0,
    "lineage_on_end": LineageRetention.DELETE_TABLE,
    "parent_namespace": "airflow",
    "parent_name": "nightly.orders",
    "parent_run": "manual__1",
    "parent_root_namespace": "airflow",
    "parent_root_name": "nightly",
    "parent_root_run": "r",
}
"""Of those that stand in the settings as they are."""


def test_every_key_is_read() -> None:
    settings, faults = read_all(EVERY_KEY)
    assert faults == []
    assert settings.listener_names == ("kafka", "audit", "changes", "kafka2")
    assert settings.tags == {"team": "sales", "cost.centre": "7"}
    assert settings.model_dump(exclude={"namespaces", "tags", "listeners"}) == THEIR_VALUES


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("listners", "did you mean spark.headwater.listeners?"),
        ("spool.max.byts", "did you mean spark.headwater.spool.max.bytes?"),
        ("job.nam", "did you mean spark.headwater.job.name?"),
        ("kafak.bootstrap.servers", "did you mean spark.headwater.kafka.bootstrap.servers?"),
        ("warehouse.url", "no listener is called warehouse (there is kafka)"),
        ("kafka", "there is no key spark.headwater.kafka: there is spark.headwater.enabled, "),
        ("tags", "spark.headwater.tags is a section"),
        ("store.url", "there is no key spark.headwater.store.url: there is none in that section"),
    ],
)
def test_a_wrong_key_is_reported_with_the_right_one(key: str, words: str) -> None:
    settings, faults = read_all({"listeners": "kafka", key: "SECRET", "kafka.anything.at.all": "its own"})
    assert len(faults) == 1
    assert words in faults[0]
    assert "SECRET" not in faults[0]
    assert settings.listeners == ("kafka",)


def test_it_is_the_listeners_name_that_is_wrong_and_not_its_right_key() -> None:
    _, faults = read_all({"listeners": "kafk", "kafka.bootstrap.servers": "a:9092"})
    key = "spark.headwater.kafka.bootstrap.servers is a key of the listener kafka, which isn't asked for"
    assert faults == [f"{key}: write kafka for kafk in spark.headwater.listeners"]
    _, faults = read_all({"listeners": "log", "kafka.bootstrap.servers": "a:9092"})
    assert faults[0].endswith("which isn't asked for: name kafka in spark.headwater.listeners")


def test_each_wrong_value_is_reported_and_its_default_holds() -> None:
    settings, faults = read(
        spool_fsync="sometimes",
        spool_max_bytes="lots",
        lineage_repeat="5 parsecs",
        capture_queue_count="0",
        enabled="perhaps",
        job_name="",
        capture_reads="true",
    )
    assert len(faults) == 6
    assert settings == Settings(listeners=("log",), capture_reads=True)
    assert any("spark.headwater.spool.fsync: " in fault and "'always'" in fault for fault in faults)


def test_a_wrong_policy_is_reported_with_the_nearest_right_one() -> None:
    settings, (fault,) = read_all({"lineage.on-job-end": "delete-tabel"})
    assert fault.startswith(
        "spark.headwater.lineage.on-job-end: is none of keep, delete-table, delete-all: did you mean delete-table?"
    )
    assert settings.lineage_on_end is None
    assert read_all({"lineage.on-job-end": " Delete_All "})[0].lineage_on_end is LineageRetention.DELETE_ALL


def test_a_name_that_nobody_can_have_is_no_listener_of_ours() -> None:
    settings, faults = read_all({"listeners": "job, kafka", "job.wrong": "x"})
    assert settings.listener_names == ("kafka",)
    (fault,) = faults
    before = "spark.headwater.job."
    assert fault.startswith(f"there is no key {before}wrong: there is {before}listeners, {before}name, {before}names")


def test_of_two_namespaces_that_claim_one_host_neither_holds() -> None:
    settings, faults = read_all(
        {"namespaces.a": "h1,h2", "namespaces.b": "h2", "namespaces.c": "h3", "namespaces.d": "/[/"}
    )
    assert settings.namespaces == {"c": "h3"}
    assert len(faults) == 3
    assert Namespaces.parse(settings.namespaces) == Namespaces.parse({"c": "h3"})


def test_the_spool_is_in_the_users_cache() -> None:
    assert spool_directory({"HEADWATER_CACHE": "/own", "XDG_CACHE_HOME": "/shared"}) == Path("/own/spool")
    assert spool_directory({"XDG_CACHE_HOME": "/shared"}) == Path("/shared/headwater/spool")
    assert spool_directory({}) == Path("~/.cache/headwater/spool")


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        (["spark.headwtaer.listners"], ["spark.headwtaer.listners: did you mean spark.headwater.listeners?"]),
        (["spark.Headwater.tags.team"], ["spark.Headwater.tags.team: did you mean spark.headwater.tags.team?"]),
        (["sprak.headwater.job.name"], ["sprak.headwater.job.name: did you mean spark.headwater.job.name?"]),
        (["headwater.spool.dir"], ["headwater.spool.dir: did you mean spark.headwater.spool.dir?"]),
        (
            ["spark.headwaters.listeners", "spark.headwaters.enabled", "spark.headwaters.kafka.x"],
            ["spark.headwaters.enabled: did you mean spark.headwater.enabled? (2 keys begin with spark.headwaters.)"],
        ),
    ],
)
def test_a_key_that_is_nobodys_is_reported_with_what_was_meant(keys: list[str], words: list[str]) -> None:
    assert find_misspellings(keys) == [f"there is no key {each}" for each in words]


@pytest.mark.parametrize(
    "key",
    [
        "spark.headwater.enabeld",  # reported by who reads the settings
        "headwater.pressure.limit",
        "spark.headers.enabled",
        "spark.breadwater.unlike.anything",
        "spark.hadoop.fs.s3a.path",
        "spark.executor.heartbeatInterval",
        "spark.sql.catalog.headwater.listeners",
        "spark.driver.headwater.enabled",
        "other.headwater.enabled",
    ],
)
def test_keys_of_others_are_left_alone(key: str) -> None:
    assert find_misspellings([key]) == []


@given(st.text(alphabet="headwtr", max_size=7), st.text(alphabet="headwtr", max_size=7))
def test_slips_are_the_same_both_ways_and_none_between_equals(one: str, other: str) -> None:
    assert edit_distance(one, other) == edit_distance(other, one)
    assert (edit_distance(one, other) == 0) == (one == other)
    assert abs(len(one) - len(other)) <= edit_distance(one, other) <= max(len(one), len(other))


@pytest.mark.parametrize(("word", "count"), [("headwtaer", 1), ("hedwater", 1), ("headwaterr", 1), ("haedwtaer", 2)])
def test_slips_of_the_pen(word: str, count: int) -> None:
    assert edit_distance(word, "headwater") == count


def test_the_bus_tells_them(tmp_path: Path) -> None:
    with bus_of(tmp_path, {"mine": lambda _: Hearing()}, {"spark.headwtaer.job.name": "x"}) as bus:
        assert [str(fault) for fault in bus.faults] == [
            "there is no key spark.headwtaer.job.name: did you mean spark.headwater.job.name?"
        ]


# A mistyped key of a listener costs what the key would have said, and no event.


@pytest.mark.slow
def test_a_wrong_key_of_a_listener_is_reported_and_its_events_arrive(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The real listener `log`, whose factory reads its keys by itself."""
    keys = {"listeners": "log", "log.dir": str(tmp_path / "log"), "log.fsnc": "always", "log.max.age": "sometime"}
    with bus_of(tmp_path / "spools", {}, keys) as bus:
        for _ in range(6):
            bus.emit(Heartbeat())
        assert bus.flush(60)
        (report,) = bus.report().listeners
        assert (report.lag, report.received) == (0, 6)
    said = " ".join(caplog.messages)
    assert "there is no key spark.headwater.log.fsnc: did you mean spark.headwater.log.fsync?" in said
    assert "spark.headwater.log.max.age: " in said
