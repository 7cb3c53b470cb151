"""The ways into a driver: by configuration alone, however it is started, by a call, and by `headwater run`."""

from __future__ import annotations

import os
import pty
import select
import subprocess
from pathlib import Path

import pytest

from tests.kit.drivers import BIN, PYTHON, SECONDS, SESSION, Place
from tests.kit.waiting import attempts

pytestmark = [pytest.mark.slow, pytest.mark.spark, pytest.mark.long]
WRITE = "spark.range(3).write.saveAsTable('t')\n"
LISTENERS = """
def listeners():
    bus = spark.sparkContext._jsc.sc().listenerBus().listeners()
    manager = spark._jsparkSession.listenerManager().listListeners()
    return [bus.get(n).getClass().getName() for n in range(bus.size())], [each.getClass().getName() for each in manager]
"""
OURS = "import sys; print('OURS', sorted(m for m in sys.modules if m.startswith('headwater')))\n"


@pytest.fixture
def place(tmp_path: Path, java_home: Path) -> Place:
    return Place(tmp_path, java_home)


@pytest.fixture
def plain(tmp_path: Path, java_home: Path) -> Place:
    """Without headwater in the configuration."""
    return Place(tmp_path, java_home, enabled=False)


def wrote(events: list[dict[str, object]]) -> bool:
    return any(event["kind"] == "Committed" for event in events)


def test_python_and_a_configuration(place: Place) -> None:
    place.configure({"spark.headwater.tags.team": "sales", "spark.headwater.nonsense": "1"})
    ended = place.python(SESSION + WRITE + "spark.stop()", HEADWATER_JOB_CODE_VERSION="abc123")
    assert ended.code == 0, ended.err
    assert ended.kinds()[:2] == ["JobStarted", "JobStatusChanged"]
    assert wrote(ended.events)
    assert ended.statuses() == ["orders ENDED"]
    assert ended.kinds()[-1] == "Closed"
    assert ended.events[-1]["complete"] is True
    started = ended.events[0]
    assert (started["tags"], started["code_version"]) == ({"team": "sales"}, "abc123")
    assert started["application"].startswith("local-")
    assert started["spark"]["master"] == "local[2]"
    assert "there is no key spark.headwater.nonsense" in ended.err, "a fault is seen in the log by default"
    assert not list((place.folder / "spool").glob("*/*")), "all was delivered"


def test_who_started_it_and_what_becomes_of_its_lineage(place: Place) -> None:
    """The same JVM, one context after the other, each as somebody else starts it."""
    run = "01a1fdcd-88cb-795b-a8bf-3b322e4594fd"
    own = {f"spark.headwater.parent.{key}": key for key in ("namespace", "name", "run", "root.name", "root.run")}
    openlineage = {"spark.openlineage.parentJobName": "dag.task", "spark.openlineage.parentRunId": run}
    airflow = {"AIRFLOW_CTX_DAG_ID": "dag", "AIRFLOW_CTX_TASK_ID": "load", "AIRFLOW_CTX_DAG_RUN_ID": "manual__1"}
    ways = [  # what the first one says stays with the JVM
        ({}, airflow),
        ({}, {"OPENLINEAGE_PARENT_ID": f"ns/{run}/{run}", **airflow}),
        (openlineage, airflow),
        ({**own, "spark.headwater.lineage.on-job-end": "delete-all"}, airflow),
    ]
    job = f"""
import os
import headwater.listeners as headwater
from pyspark.sql import SparkSession
for conf, environment in {ways!r}:
    before = dict(os.environ)
    os.environ.update(environment)
    builder = SparkSession.builder.appName("orders")
    for key, value in conf.items(): builder = builder.config(key, value)
    spark = builder.getOrCreate()
    with headwater.job("block", on_end="keep"): pass
    spark.stop()
    os.environ.clear(); os.environ.update(before)
"""
    ended = place.python(job)
    assert ended.code == 0, ended.err
    started = [event for event in ended.of("JobStarted") if event["scope"] == "APPLICATION"]
    assert [event.get("parent") for event in started] == [
        {
            "namespace": "default",
            "name": "dag.load",
            "run": "manual__1",
            "root_namespace": "default",
            "root_name": "dag",
            "root_run": "manual__1",
        },
        {"namespace": "ns", "name": run, "run": run},
        {"namespace": "default", "name": "dag.task", "run": run},
        {"namespace": "namespace", "name": "name", "run": "run", "root_name": "root.name", "root_run": "root.run"},
    ]
    ends = [event for event in ended.of("JobStatusChanged") if event["status"] != "RUNNING"]
    assert [(event["job"]["name"], event.get("on_job_end")) for event in ends] == [
        *[("block", "KEEP"), ("orders", None)] * 3,
        ("block", "KEEP"),
        ("orders", "DELETE_ALL"),
    ]


def test_without_it_nothing_of_ours_is_loaded(tmp_path: Path, java_home: Path) -> None:
    plain = Place(tmp_path, java_home, enabled=False, patience=None)  # which would load it
    ended = plain.python(SESSION + WRITE + OURS + "spark.stop()")
    assert ended.code == 0, ended.err
    assert ended.events == []
    assert "OURS ['headwater', 'headwater.listeners', 'headwater.listeners.hook']" in ended.out
    assert not (plain.folder / "spool").exists()


def test_spark_submit_and_its_python_workers(plain: Place) -> None:
    """The workers inherit much of the driver, but in them nothing is put in place."""
    look = (
        "def look(_):\n    import sys\n"
        "    return [type(f).__module__ for f in sys.meta_path if type(f).__module__.startswith('headwater')]\n"
        "print('WORKERS', spark.sparkContext.parallelize([1], 1).map(look).collect())\n" + OURS
    )
    plain.script(SESSION + WRITE + look)
    submit = ["--conf", "spark.headwater.enabled=true", "--conf", "spark.headwater.nonsense=1", "job.py"]
    ended = plain.run(BIN / "spark-submit", *submit)
    assert ended.code == 0, ended.err
    assert wrote(ended.events)
    assert ended.statuses() == ["orders ENDED"]
    assert ended.kinds()[-1] == "Closed"
    assert "WORKERS [[]]" in ended.out
    assert "there is no key spark.headwater.nonsense" in ended.out, "where spark-submit puts what Python says"


def test_the_pyspark_shell(place: Place) -> None:
    """It needs a terminal; a statement that fails there is no end of the run."""
    terminal, inside = pty.openpty()
    command = [str(BIN / "pyspark")]
    with subprocess.Popen(
        command, cwd=place.folder, env=place.environment, stdin=inside, stdout=inside, stderr=inside
    ) as shell:
        os.close(inside)
        said = ""
        for expected, line in ((">>> ", WRITE), (">>> ", "1 / 0\n"), ("ZeroDivisionError", "exit()\n"), (None, "")):
            said += read_until(terminal, expected)
            os.write(terminal, line.encode()) if line else None
        code = shell.wait(timeout=SECONDS)
    os.close(terminal)
    ended = place.ended(code, said, "")
    assert ended.code == 0, said
    assert wrote(ended.events)
    (status,) = ended.statuses()
    user = ended.events[0]["user"]
    assert status == f"{user}.PySparkShell ENDED"
    assert "is called 'PySparkShell' as many others are" in said


def read_until(terminal: int, expected: str | None) -> str:
    """What a terminal says up to this; up to its end for None."""
    said = ""
    for _ in attempts(f"{expected!r} in what a terminal says", SECONDS):
        if expected is not None and expected in said:
            break
        if select.select([terminal], [], [], 1)[0]:
            try:
                said += os.read(terminal, 65536).decode("utf-8", "replace")
            except OSError:  # the other side is closed
                break
    return said


def test_a_call_and_what_is_left_when_it_is_undone(plain: Place) -> None:
    job = f"""
import signal, sys, threading
import headwater.listeners as headwater
{SESSION}{LISTENERS}
from pyspark import SparkContext
def patches():
    of_signals = [signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGHUP)]
    return [SparkContext.stop, SparkContext._do_init, sys.excepthook, *of_signals]
spark.sql("SELECT 1").collect()  # Spark's own listeners come with the first statement
before, untouched = listeners(), patches()
installed = headwater.install(spark)
assert headwater.install(spark.sparkContext) is installed
assert installed.is_active
assert listeners() != before
assert patches() != untouched
{WRITE}
assert installed.flush()
headwater.uninstall()
assert not installed.is_active
assert listeners() == before, listeners()
import headwater.listeners.hook as hook
assert hook._finder not in sys.meta_path
left = [a for a, b in zip(patches(), untouched) if a is not b]
assert [each.__name__ for each in left] == ["_do_init"] and not hook._patched, left
threads = [t.name for t in threading.enumerate() if t.name.startswith("headwater")]
for t in threading.enumerate():
    if t.name.startswith("headwater"): t.join(60)
assert not [t.name for t in threading.enumerate() if t.name.startswith("headwater")], threads
spark.range(3).write.saveAsTable('unseen')
again = headwater.install(spark)
spark.range(3).write.saveAsTable('seen_again')
spark.stop()
print("through")
"""
    ended = plain.python(job)
    assert (ended.code, ended.out) == (0, "through\n"), ended.err
    tables = [output["table"]["table"] for event in ended.of("Committed") for output in event["outputs"]]
    assert tables == ["t", "seen_again"]
    assert ended.statuses() == ["orders ENDED", "orders ENDED"]
    assert len({event["run"] for event in ended.events}) == 2


def test_what_headwater_cannot_be_installed_in(plain: Place) -> None:
    job = f"""
import headwater.listeners as headwater
from headwater.errors import TerminalError
def refused(what):
    try: headwater.install(what)
    except TerminalError as e: print(e)
class Connect:
    @property
    def sparkContext(self): raise AttributeError("JVM_ATTRIBUTE_NOT_SUPPORTED")
refused(None); refused("spark"); refused(Connect())
{SESSION}
context = spark.sparkContext
spark.stop()
refused(spark); refused(context)
"""
    ended = plain.python(job)
    assert ended.code == 0, ended.err
    lines = ended.out.splitlines()
    assert len(lines) == 5
    assert all("give it the SparkSession or SparkContext of a driver" in line for line in lines[:3])
    assert all("is stopped" in line for line in lines[3:])


@pytest.mark.parametrize(
    ("end", "code", "status", "emitted"),
    [
        ("", 0, "FINISHED", {}),
        ("spark.stop()", 0, "FINISHED", {}),
        ("spark.stop()\nraise SystemExit(3)", 3, "FAILED", {"exit_code": 3}),
        ("try: raise KeyError('x')\nfinally: spark.stop()", 1, "FAILED", {"exit_code": 1}),
        ("raise KeyboardInterrupt", -2, "KILLED", {"signal": 2}),
    ],
)
def test_headwater_run_knows_the_end(plain: Place, end: str, code: int, status: str, emitted: dict[str, int]) -> None:
    plain.script(SESSION + WRITE + "import sys; print(sys.argv)\n" + end)
    ended = plain.run(BIN / "headwater", "run", "--conf", "spark.headwater.job.name=etl", "job.py", "--conf", "x")
    assert (ended.code, ended.out) == (code, "['job.py', '--conf', 'x']\n"), ended.err
    assert ended.statuses() == [f"etl {status}"]
    assert wrote(ended.events)
    assert {event["job"]["name"] for event in ended.events} == {"etl"}
    terminal = ended.of("JobStatusChanged")[-1]
    assert {key: terminal.get(key) for key in emitted} == emitted
    assert "/headwater/" not in ended.err, "tracebacks are the script's"


def test_a_context_that_fails_to_start_fails_as_without_us(place: Place) -> None:
    ended = place.python(SESSION.replace(".getOrCreate", ".master('local[0]').getOrCreate"))
    assert ended.code == 1
    assert "Asked to run locally with 0 threads" in ended.err
    assert ended.events == []


def test_python_flags_and_modules(place: Place) -> None:
    """-I takes away what PYTHONPATH says, but not what is installed."""
    place.script(SESSION + WRITE)
    listeners = f"import sys; sys.path.insert(0, {str(place.folder)!r})\n"
    place.script(listeners + SESSION + WRITE)
    ended = place.run(PYTHON, "-I", "job.py")
    assert ended.code == 0, ended.err
    assert ended.statuses() == ["orders ENDED"]
    off = place.run(PYTHON, "-S", "-c", f"import sys; sys.path[:0] = {[str(p) for p in _site_packages()]!r}\n{SESSION}")
    assert off.code == 0, off.err
    assert off.events == []


def _site_packages() -> list[Path]:
    import pyspark

    return [Path(str(pyspark.__file__)).parent.parent]
