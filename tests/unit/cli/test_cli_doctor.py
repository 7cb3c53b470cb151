"""`headwater doctor` where no server is needed: what it says of a configuration, of its place, of each listener."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from headwater.cli import main
from headwater.cli.commands import Command, Leaf
from headwater.cli.doctor import class_files, installation, spool
from headwater.cli.doctor.class_files import Jars, check_compiled_classes
from headwater.cli.doctor.installation import check_format_jars
from headwater.cli.doctor.listeners import check_listener
from headwater.cli.exits import Exit
from headwater.events import CatalogOptionsDeclared, Closed, Event, Heartbeat
from headwater.events.avro import Codec
from headwater.journal import LocalLog
from headwater.journal.filesystem import FileSystem, FileSystemKind
from headwater.jvm import bundled
from headwater.jvm.bundled import ArchiveFacts, BundledArchive, pack
from headwater.jvm.last_start import DriverStart, read_last_start, record_start
from headwater.jvm.loader import ClassOrigin
from headwater.lineage.mapping import map_event
from headwater.lineage.store import open_store
from headwater.listeners.bus.listener_creation import ListenerSpec
from headwater.listeners.bus.shipper import start
from headwater.listeners.capture.formats import CORE
from headwater.listeners.capture.jvm import source_groups
from headwater.listeners.capture.self_test import parse_reflection
from headwater.plugins import extra_command
from headwater.publishers import checks
from headwater.spi import CheckResult, CheckStatus, Diagnosable, Listener, ListenerContext
from headwater.testing.examples import CONTEXT
from headwater.testing.memory import MemoryListener
from tests.kit.bus.scripts import bus_of
from tests.kit.lineage.scripted_producer import ScriptedProducer
from tests.kit.waiting import until

Doctor = Callable[..., tuple[int, list[dict[str, Any]]]]


@pytest.fixture(autouse=True)
def nothing_of_this_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for variable in ("SPARK_HOME", "SPARK_CONF_DIR", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
        monkeypatch.delenv(variable, raising=False)
    disk = FileSystem(FileSystemKind.LOCAL, "ext4", "/")
    monkeypatch.setattr(spool, "file_system_of", lambda _: disk)
    monkeypatch.setattr(checks, "file_system_of", lambda _: disk)
    monkeypatch.setattr(spool, "_SLOW", 60.0)
    monkeypatch.setattr(checks, "_SLOW_SECONDS", 60.0)


_answers: dict[tuple[Path, ...], bool] = {}
_are_in_wheel: Any = vars(class_files)["_are_in_wheel"]


def are_in_wheel_once(class_path: Any) -> bool:
    """All jars of Spark are read for it, and most tests here are about something else."""
    key = tuple(class_path._named)
    if key not in _answers:
        _answers[key] = _are_in_wheel(class_path)
    return _answers[key]


@pytest.fixture
def examine(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Doctor:
    """The exit code, and the findings."""
    monkeypatch.setattr(class_files, "_are_in_wheel", are_in_wheel_once)

    def run(*arguments: str, **keys: str) -> tuple[int, list[dict[str, Any]]]:
        given = {
            "enabled": "true",
            "spool.dir": str(tmp_path / "spools"),
            "listeners": "log",
            **({"log.dir": str(tmp_path / "log")} if "log" in keys.get("listeners", "log").split(",") else {}),
            **{key.replace("_", "."): value for key, value in keys.items()},
        }
        conf = [each for key, value in given.items() for each in ("--conf", f"spark.headwater.{key}={value}")]
        code = main(["--output", "json", "doctor", *conf, *arguments])
        document = json.loads(capsys.readouterr().out)
        findings: list[dict[str, Any]] = document["findings"]
        assert sum(document["summary"].values()) == len(findings)
        return code, findings

    return run


def of(findings: list[dict[str, Any]], step: str, chapter: str = "") -> dict[str, Any]:
    (found,) = [each for each in findings if each["step"] == step and each["chapter"].endswith(chapter)]
    return found


def not_ok(findings: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [each for each in findings if each["status"] != "ok"]


def test_where_all_is_well_all_is_fine_and_one_event_is_in_the_log(examine: Doctor, tmp_path: Path) -> None:
    code, findings = examine()
    assert (code, not_ok(findings)) == (Exit.DONE, [])
    assert [each["chapter"] for each in findings if each["step"] in {"keys", "hook", "fsync", "writing"}] == [
        "configuration",
        "installation",
        "spool",
        "listener log",
    ]
    with LocalLog.open(tmp_path / "log").reader("partition-0000").tail(0) as tail:
        records = tail.read().records
    (event,) = [Codec().decode(record.value) for record in records]
    assert isinstance(event, Closed)
    assert (event.sequence, event.complete) == (1, True)
    assert event.application.startswith("headwater-doctor-")
    assert list((tmp_path / "spools").iterdir()) == []


def test_every_fault_is_reported_with_the_key_that_was_meant(examine: Doctor) -> None:
    code, findings = examine(
        "--conf", "spark.headwtaer.job.name=x", spool_max_byte="5", spool_fsync="sometimes", listeners="log,log=console"
    )
    assert code == Exit.CONFIGURATION
    words = [each["message"] for each in not_ok(findings)]
    assert any(
        "no key spark.headwater.spool.max.byte: did you mean spark.headwater.spool.max.bytes?" in w for w in words
    )
    assert any("spark.headwater.spool.fsync" in each for each in words)
    assert any("did you mean spark.headwater.job.name?" in each for each in words)
    assert any("two listeners are called log" in each for each in words)


def test_a_listener_that_is_misspelt_or_wrongly_configured_is_a_fault_of_the_configuration(examine: Doctor) -> None:
    code, findings = examine(listeners="cnosole")
    assert code == Exit.CONFIGURATION
    assert "did you mean console?" in of(findings, "factory")["message"]
    code, findings = examine(listeners="console", console_format="jsno")
    assert code == Exit.CONFIGURATION
    assert "spark.headwater.console.format" in of(findings, "factory")["message"]
    assert "spark.headwater.console." in of(findings, "factory")["advice"]


def test_what_keeps_headwater_from_doing_anything_is_reported(examine: Doctor) -> None:
    code, findings = examine(enabled="false", listeners="")
    assert code == Exit.CONFIGURATION
    assert of(findings, "enabled")["status"] == "warning"
    assert of(findings, "enabled")["advice"] == "spark.headwater.enabled=true"
    assert of(findings, "listeners")["status"] == "error"


def test_one_listener_can_be_examined_alone(examine: Doctor) -> None:
    _, findings = examine("--listener", "log", listeners="log,console")
    assert {each["chapter"] for each in findings} == {"configuration", "installation", "spool", "listener log"}
    code, findings = examine("--listener", "lgo", listeners="log,console")
    assert code == Exit.CONFIGURATION
    assert "did you mean 'log'?" in next(each["message"] for each in not_ok(findings))


def test_properties_come_from_a_file_and_from_where_spark_finds_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "spark-defaults.conf"
    file.write_text(
        f"spark.headwater.enabled true\nspark.headwater.listeners console\nspark.headwater.spool.dir {tmp_path}/s\n"
    )
    assert main(["doctor", "--properties-file", str(file)]) == Exit.DONE
    first = capsys.readouterr().out
    assert f"3 keys begin with spark.headwater., from {file}" in " ".join(first.split())
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    assert main(["doctor", "--conf", "spark.headwater.enabled=false"]) == Exit.DONE
    second = " ".join(capsys.readouterr().out.split())
    assert f"from {file} and --conf" in second
    assert "enabled isn't true" in second, "what is given goes before the file"
    assert main(["doctor", "--properties-file", str(tmp_path / "none")]) == Exit.CONFIGURATION
    assert "can't be read" in " ".join(capsys.readouterr().out.split())


def test_a_variable_names_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "spark.conf"
    file.write_text(f"spark.headwater.listeners console\nspark.headwater.spool.dir {tmp_path}\n")
    monkeypatch.setenv("HEADWATER_PROPERTIES_FILE", str(file))
    monkeypatch.setenv("HEADWATER_LISTENER", "nobody")  # what to leave out is said by flags only
    assert main(["doctor"]) == Exit.DONE
    assert "listener console" in capsys.readouterr().out


@pytest.mark.slow
def test_metrics_without_their_library(examine: Doctor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headwater.cli.doctor.configuration.find_spec", lambda _: None)
    _, findings = examine(metrics_port="0")
    assert of(findings, "metrics")["advice"] == extra_command("metrics")


def test_an_interpreter_without_the_line_in_site_packages(examine: Doctor, monkeypatch: pytest.MonkeyPatch) -> None:
    real = subprocess.run

    def without(command: list[str], **more: Any) -> Any:
        return real([command[0], "-S", *command[1:]], **more)

    monkeypatch.setattr(subprocess, "run", without)
    code, findings = examine()
    assert code == Exit.FAILED
    assert of(findings, "hook")["status"] == "error"
    assert "pip install headwater" in of(findings, "hook")["advice"]


def test_headwater_from_a_zip(examine: Doctor, monkeypatch: pytest.MonkeyPatch) -> None:
    """No `.pth` file is read there, so a job has to call it."""
    monkeypatch.setattr(installation, "_ASK", "raise SystemExit(1)")
    monkeypatch.setattr(installation, "_places", lambda: ["/jobs/headwater.zip/headwater"])
    monkeypatch.setattr(installation, "own_version", lambda: None)
    _, findings = examine()
    assert "imported from a zip" in of(findings, "hook")["message"]
    assert of(findings, "hook")["status"] == "warning"
    assert of(findings, "hook")["advice"].startswith("call headwater.listeners.install(spark) in the job; or install")
    assert of(findings, "headwater")["status"] == "ok"


@pytest.mark.slow
def test_a_shipper_that_cannot_import_headwater(examine: Doctor, monkeypatch: pytest.MonkeyPatch) -> None:
    _, findings = examine(log_isolation="process")
    assert of(findings, "process")["status"] == "ok"
    monkeypatch.setattr(start, "_import_path", list)
    code, findings = examine(log_isolation="process")
    assert code == Exit.FAILED
    assert "can't import what this process could" in of(findings, "process")["message"]
    assert of(findings, "process")["advice"].endswith("or set spark.headwater.log.isolation=thread")


def test_a_missing_package_is_reported_by_the_command_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def missing(_: Leaf) -> Command:
        raise ImportError("cannot import it", name="pydantic_core._pydantic_core")

    monkeypatch.setattr(Leaf, "load", missing)
    assert main(["doctor"]) == Exit.FAILED
    assert "pip install pydantic" in capsys.readouterr().err


def test_a_driver_of_another_python(examine: Doctor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = tmp_path / "bin" / "python3"
    other.parent.mkdir()
    other.symlink_to(sys.executable)
    _, findings = examine("--conf", f"spark.pyspark.driver.python={other}")
    assert of(findings, "python")["status"] == "warning"
    assert of(findings, "python")["advice"] == f"ask that one: {other} -m headwater.cli doctor"
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    _, findings = examine()
    assert not [each for each in findings if each["step"] == "python"]


def test_what_is_read_by_reflection_is_looked_for_in_sparks_jars(
    examine: Doctor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a JVM: a version that drivers will be moved to can be asked before."""
    _, findings = examine()
    found = of(findings, "reflection")
    assert found["status"] == "ok"
    number = found["message"].split()[0]
    assert found["message"].startswith(f"{number} of {number} members")
    assert int(number) > 100
    renamed = parse_reflection(
        "[X]\norg.apache.spark.scheduler.LiveListenerBus: queues queuesRenamed\n"
        "org.apache.spark.scheduler.AsyncEventQueue: post(org.apache.spark.scheduler.SparkListenerEvent) post(int)\n"
        "org.apache.spark.scheduler.Nowhere: x\n?org.apache.spark.scheduler.Nowhere: y\n"
    )
    monkeypatch.setattr(installation, "read_reflection", lambda _: renamed)
    monkeypatch.setattr(installation, "_look_for_members", installation._look_for_members.__wrapped__)
    monkeypatch.setattr(installation, "Jars", lambda paths: Jars(each for each in paths if "-core_" in each.name))
    _, findings = examine()
    found = of(findings, "reflection")
    names = ("LiveListenerBus.queuesRenamed", "AsyncEventQueue.post(int)", "Nowhere.x")
    assert found["status"] == "warning"
    assert found["message"].startswith("3 of 6 members")
    assert found["message"].endswith("without " + "; ".join(f"org.apache.spark.scheduler.{each}" for each in names))


def test_another_spark_or_none(examine: Doctor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pyspark").mkdir()
    (tmp_path / "pyspark" / "__init__.py").touch()
    (tmp_path / "pyspark" / "version.py").write_text('__version__: str = "3.2.1.dev0"\n')
    real = find_spec
    found = ModuleSpec("pyspark", None, origin=str(tmp_path / "pyspark" / "__init__.py"))
    monkeypatch.setattr(installation, "find_spec", lambda _: found)
    _, findings = examine()
    assert (of(findings, "pyspark")["status"], of(findings, "pyspark")["message"][:9]) == ("warning", "3.2.1.dev")
    monkeypatch.setattr(installation, "find_spec", lambda name: None if name == "pyspark" else real(name))
    _, findings = examine()
    assert of(findings, "pyspark")["status"] == "warning"


@pytest.mark.parametrize(
    ("found", "word"),
    [
        (FileSystem(FileSystemKind.NETWORK, "nfs4", "/mnt"), "nfs4"),
        (FileSystem(FileSystemKind.NETWORK, "cifs", "/mnt"), "cifs"),
        (FileSystem(FileSystemKind.OBJECTS, "fuse.s3fs", "/mnt"), "fuse.s3fs"),
        (FileSystem(FileSystemKind.USERSPACE, "fuse.own", "/mnt"), "fuse.own"),
        (FileSystem(FileSystemKind.MEMORY, "tmpfs", "/memory"), "tmpfs"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_place_that_is_no_local_disk(
    examine: Doctor, monkeypatch: pytest.MonkeyPatch, found: FileSystem, word: str
) -> None:
    monkeypatch.setattr(spool, "file_system_of", lambda _: found)
    monkeypatch.setattr(checks, "file_system_of", lambda _: found)
    code, findings = examine()
    assert code == Exit.DONE
    for chapter, key in (("spool", "spool.dir"), ("log", "log.dir")):
        finding = of(findings, "file system", chapter)
        assert finding["status"] == "warning"
        assert word in finding["message"]
        assert f"spark.headwater.{key}" in finding["advice"]


def test_the_layer_of_a_container_is_a_warning_where_nothing_outlives_it(
    examine: Doctor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spool, "file_system_of", lambda _: FileSystem(FileSystemKind.LOCAL, "overlay", "/"))
    _, findings = examine()
    assert "spark.headwater.spool.handover" in of(findings, "file system", "spool")["advice"]
    _, findings = examine(spool_handover=str(tmp_path))
    assert of(findings, "file system", "spool")["status"] == "ok"


@pytest.mark.slow
def test_where_what_is_not_delivered_goes(examine: Doctor, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    given = {str(tmp_path): "ok", str(tmp_path / "new"): "warning", str(tmp_path / "file"): "error"}
    for handover, state in {**given, "s3a://bucket/spools": "ok"}.items():
        _, findings = examine(spool_handover=handover)
        assert of(findings, "handover")["status"] == state


def test_a_directory_that_is_a_file(examine: Doctor, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    code, findings = examine(spool_dir=str(tmp_path / "file"), log_dir=str(tmp_path / "file"))
    assert code == Exit.CONFIGURATION
    assert "name another in spark.headwater.spool.dir" in of(findings, "directory", "spool")["advice"]
    assert "spark.headwater.log.dir" in of(findings, "factory")["message"]


def test_a_disk_that_is_nearly_full(examine: Doctor, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = type(shutil.disk_usage("/"))
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(1 << 40, 1 << 40, 300 << 20))
    _, findings = examine()
    finding = of(findings, "room", "spool")
    assert (finding["status"], finding["message"][:21]) == ("warning", "300 MiB are free, and")
    assert "spark.headwater.spool.max.bytes" in finding["advice"]
    assert of(findings, "room", "log")["status"] == "warning"
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(1 << 40, 1 << 40, 1000))
    code, findings = examine()
    assert (code, of(findings, "room", "spool")["status"]) == (Exit.FAILED, "error")


@pytest.mark.slow
def test_a_disk_that_refuses_to_sync_or_is_slow(examine: Doctor, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", refuse)
    code, findings = examine(listeners="console")
    assert code == Exit.FAILED
    assert "Input/output error" in of(findings, "directory", "spool")["message"]
    monkeypatch.setattr(spool, "_SLOW", 0.1)
    monkeypatch.setattr(os, "fsync", lambda _: time.sleep(0.11))
    _, findings = examine(listeners="console")
    assert of(findings, "fsync")["status"] == "warning"


def test_what_dead_drivers_left_is_reported_with_its_age(examine: Doctor, tmp_path: Path) -> None:
    with bus_of(tmp_path / "spools", {}, {"listeners": "lgo"}) as bus:
        bus.emit(Heartbeat())
        until(lambda: bus.faults)
        left = bus.spool
    assert left is not None
    days_ago = time.time() - 3 * 86_400
    for each in left.glob("*.segment"):
        os.utime(each, (days_ago, days_ago))
    code, findings = examine()
    assert code == Exit.DONE
    finding = of(findings, "dead drivers")
    assert finding["message"] == "1 left something undelivered, the oldest 3 d ago, for lgo"
    assert "headwater spool status" in finding["advice"]


class Hung:
    """Its factory comes back, and its examination doesn't."""

    may_go_on = threading.Event()

    def create(self, context: ListenerContext) -> Listener:
        return MemoryListener()

    def diagnose(self, context: ListenerContext) -> Iterator[CheckResult]:
        yield CheckResult.ok("first", "a step that ends")
        self.may_go_on.wait(100)


class Broken(Hung):
    def diagnose(self, context: ListenerContext) -> Iterator[CheckResult]:
        yield CheckResult.ok("first", context.prefix)
        raise RuntimeError(f"it broke with {context.configuration['password']}")


class Plain:
    def create(self, context: ListenerContext) -> Listener:
        return MemoryListener()


class Refusing:
    def create(self, context: ListenerContext) -> Listener:
        raise OSError("nothing here")


@pytest.mark.slow
def test_a_catalog_that_was_declared_otherwise_first(examine: Doctor, tmp_path: Path) -> None:
    """Its options are immutable, and only the store knows who was first."""
    url = f"jdbc:sqlite:{tmp_path / 'lineage.db'}"
    producer = ScriptedProducer(1, "etl")
    producer.emit(0, CatalogOptionsDeclared, context=CONTEXT, data_lineage=False)
    with open_store(url) as store:
        store.merge(row for event in producer.events for row in map_event(event))
    switch = f"spark.sql.catalog.{CONTEXT.name}.data-lineage"
    where = {"listeners": "jdbc", "jdbc_url": url}
    code, findings = examine("--conf", f"{switch}=true", **where)
    found = of(findings, "catalogs")
    assert (code, found["status"]) == (Exit.CONFIGURATION, "error")
    assert found["message"].endswith("is true here, and false was declared first, which holds")
    assert found["advice"].startswith(f"{switch}=false")
    code, findings = examine("--conf", f"{switch}=false", **where)
    assert [each for each in findings if each["step"] == "catalogs"] == []


def test_an_examination_that_hangs_is_given_up() -> None:
    wanted = ListenerSpec("hung", f"hung={__name__}:Hung", "spark.headwater.listeners")
    began = time.monotonic()
    findings = list(check_listener(wanted, {}, patience=1.0))
    assert time.monotonic() - began < 60
    Hung.may_go_on.set()
    assert [(each.step, each.status.value) for each in findings] == [
        ("factory", "ok"),
        ("first", "ok"),
        ("examination", "error"),
    ]


def test_an_examination_that_breaks_is_reported_without_secrets(examine: Doctor) -> None:
    code, findings = examine(listeners=f"mine={__name__}:Broken", mine_password="hunter2")
    assert code == Exit.FAILED
    assert of(findings, "first")["message"] == "spark.headwater.mine."
    assert of(findings, "examination")["message"] == "it failed: RuntimeError: it broke with ***"


def test_others_factories(examine: Doctor) -> None:
    code, findings = examine(listeners=f"plain={__name__}:Plain")
    assert (code, of(findings, "examination")["status"]) == (Exit.DONE, "warning")
    code, findings = examine(listeners=f"refusing={__name__}:Refusing")
    assert (code, of(findings, "factory")["message"]) == (Exit.CONFIGURATION, "OSError: nothing here")
    code, findings = examine(listeners="nothing=json:JSONDecoder")
    assert code == Exit.CONFIGURATION


def test_our_own_factories_can_be_examined() -> None:
    from headwater.publishers.console import ConsoleFactory
    from headwater.publishers.kafka import KafkaFactory
    from headwater.publishers.log import LogFactory

    assert all(isinstance(each(), Diagnosable) for each in (ConsoleFactory, KafkaFactory, LogFactory))
    assert not isinstance(Plain(), Diagnosable)


def test_the_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["doctor", "--conf", "spark.headwater.listeners=console", "--conf", f"spark.headwater.spool.dir={tmp_path}"])
    page = capsys.readouterr().out
    lines = page.splitlines()
    assert (
        "  warning   enabled        spark.headwater.enabled isn't true: headwater does nothing, unless a job" in lines
    )
    assert "                           -> spark.headwater.enabled=true" in lines
    counted = [sum(line.startswith(f"  {state} ") for line in lines) for state in ("error", "warning", "ok")]
    assert counted[0] == 0
    assert counted[1] >= 1, "a busy disk is a warning too"
    assert lines[-1] == "error: {}, warning: {}, ok: {}".format(*counted)
    long = [line for line in lines if len(line) > 100 and "->" not in line]
    assert [line for line in long if " " in line.strip()] == [], "but for a path, which may be longer than a line"


def test_an_event_of_the_doctor_is_an_event(tmp_path: Path) -> None:
    from headwater.publishers.checks import probe_record
    from headwater.spi import Application

    record = probe_record(Application("headwater-doctor-1", "headwater doctor"))
    assert isinstance(record.event, Event)
    assert (record.event.kind, record.event_id.sequence) == ("Closed", 1)


@pytest.mark.parametrize(
    ("key", "jars", "spark", "said"),
    [
        (
            "spark.jars.packages",
            "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0,org.postgresql:postgresql:42.7.8",
            "4.3.0",
            "error: iceberg-spark-runtime-4.1_2.13 is for Spark 4.1, and drivers run Spark 4.3.0",
        ),
        (
            "spark.jars.packages",
            "io.delta:delta-spark_4.1_2.13:4.4.0",
            "4.1.1",
            "ok: delta-spark_4.1_2.13 is for Spark 4.1",
        ),
        ("spark.jars", "/jars/paimon-spark-3.5-0.9.0.jar", "4.0.2", "error: paimon-spark-3.5-0.9.0"),
        (
            "spark.driver.extraClassPath",
            "/j/hudi-spark3.5-bundle_2.12-1.1.1.jar:/j/x.jar",
            "3.5.7",
            "ok: hudi-spark3.5",
        ),
    ],
)
def test_a_jar_for_another_spark_is_an_error(key: str, jars: str, spark: str, said: str) -> None:
    (found,) = check_format_jars({key: jars}, spark, None)
    assert f"{found.status.value}: {found.message}".startswith(said)
    if found.status.value == "error":
        assert found.advice.startswith(("run it on Spark", "take the one for Spark"))


def test_a_jar_that_says_no_spark_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "iceberg-spark-runtime-4.0_2.13-1.11.0.jar").touch()
    assert list(check_format_jars({"spark.jars.packages": "io.delta:delta-spark_2.12:3.3.3"}, "3.5.7", None)) == []
    (beside,) = check_format_jars({}, "4.1.1", tmp_path)
    assert (beside.status.value, beside.advice[:30]) == ("error", "take the one for Spark 4.1: he")


def test_it_says_where_a_driver_has_its_classes_from_and_where_the_last_one_had(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The wheel's class files are for these very jars and sources; else there is the cache, where one can be kept."""
    monkeypatch.setenv("HEADWATER_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(bundled, "DIRECTORY", tmp_path)
    spark = tmp_path / "jars" / "spark.jar"
    spark.parent.mkdir()
    with ZipFile(spark, "w") as jar:
        jar.writestr("org/apache/spark/sql/SparkSession.class", b"")

    (found,) = check_compiled_classes({}, spark.parent)
    assert found.message.startswith("this wheel has none for these jars: a driver opens those that one before it kept")
    (core,) = source_groups(list(CORE))
    (tmp_path / "core.jar").write_bytes(pack({}, ArchiveFacts()))
    line = BundledArchive(core.digest(core.sources), 8, (bundled.jar_identity(spark),), "core.jar")
    bundled.write_index([line], tmp_path)
    last = DriverStart(ClassOrigin.COMPILER, "app-1", "3.5.7", "17.0.1", "2026-03-01T02:00:07+00:00")
    record_start(last)
    assert read_last_start() == last
    assert [each.message for each in check_compiled_classes({}, spark.parent)] == [
        "a driver opens those of this wheel, and compiles nothing",
        "the last driver here, app-1 (Spark 3.5.7, Java 17.0.1, 2026-03-01T02:00:07+00:00), compiled its classes",
    ]
    bundled.write_index([], tmp_path)
    (tmp_path / "cache" / "class-files").chmod(0o777)
    (found,) = check_compiled_classes({}, spark.parent)
    assert (found.status, "as none can be kept" in found.message) == (CheckStatus.WARNING, True)
