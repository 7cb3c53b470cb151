"""How runs end, and that no end of a driver ever waits for us, or differs from what it is without us."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from headwater.events.avro import Codec
from headwater.events.envelope import Event
from headwater.events.jobs import Committed, JobStatus, JobStatusChanged
from tests.kit.bus.logs import records_of
from tests.kit.drivers import BIN, PYTHON, SECONDS, SESSION, Place
from tests.kit.waiting import PATIENCE

pytestmark = [pytest.mark.slow, pytest.mark.spark]
WRITE = "spark.range(3).write.saveAsTable('t')\n"
HANGING = """
import threading, time
from headwater.listeners.bus import Bus
from headwater.listeners.installation import InstallationFactories, contexts
class Hanging:
    def __init__(self, *parts): pass
    def start(self): pass
    def drain(self, timeout): threading.Event().wait()
    def close(self, timeout): threading.Event().wait()
contexts.factories = InstallationFactories(Bus.open, Hanging)
"""


@pytest.fixture
def place(tmp_path: Path, java_home: Path) -> Place:
    return Place(tmp_path, java_home)


@pytest.fixture
def impatient(tmp_path: Path, java_home: Path) -> Place:
    """Where a job waits at its end for some seconds only: what hangs takes all of them."""
    place = Place(tmp_path, java_home, patience=4)
    place.configure({"spark.headwater.capture.wait": f"{PATIENCE:g}s"})
    return place


@pytest.mark.sample(1, keep=("raise ValueError('no')-1-FAILED-ValueError",))
@pytest.mark.parametrize(
    ("end", "code", "status", "error"),
    [
        ("", 0, "ENDED", None),
        ("import sys; sys.exit(0)", 0, "ENDED", None),
        ("raise SystemExit(3)", 3, "ENDED", None),
        ("spark.stop()\nraise SystemExit(3)", 3, "ENDED", None),
        ("raise ValueError('no')", 1, "FAILED", "ValueError"),
        ("try: raise ValueError('no')\nfinally: spark.stop()", 1, "FAILED", "ValueError"),
        ("with spark: raise ValueError('no')", 1, "FAILED", "ValueError"),
        ("spark.stop()\nraise ValueError('no')", 1, "ENDED", None),  # of what came after Spark nothing is known
        ("spark._jvm.scala.collection.immutable.List.empty().head()", 1, "FAILED", "Py4JJavaError"),
        (
            "import atexit; atexit.register(spark.stop)\nspark.sql('SELECT * FROM nowhere')",
            1,
            "FAILED",
            "AnalysisException",
        ),
        ("import os; os.kill(os.getpid(), 15)", -15, "KILLED", None),
        ("raise KeyboardInterrupt", -2, "KILLED", None),
        ("import os, signal; signal.raise_signal(2)", -2, "KILLED", None),
    ],
)
def test_ends_without_anybody_who_waits_for_them(
    place: Place, end: str, code: int, status: str, error: str | None
) -> None:
    ended = place.python(SESSION + WRITE + end)
    assert ended.code == code, ended.err
    assert ended.statuses() == [f"orders {status}"]
    assert ended.kinds()[-1] == "Closed"
    assert "Committed" in ended.kinds(), "what was done just before is recorded"
    terminal = ended.of("JobStatusChanged")[-1]
    assert (terminal.get("error") or {"type": None})["type"] == error or terminal["error"]["type"].endswith(str(error))


@pytest.mark.long
def test_an_end_that_nobody_sees_is_reported_by_nobody(place: Place) -> None:
    """Here: whoever finds what a durable listener hasn't got yet in the spool tells it."""
    ended = place.python(SESSION + "import os; os._exit(7)")
    assert ended.code == 7
    assert ended.kinds()[:2] == ["JobStarted", "JobStatusChanged"]
    assert ended.statuses() == []
    assert "Closed" not in ended.kinds()


@pytest.mark.long
def test_a_driver_that_was_killed_is_reported_once_however_many_find_it(place: Place) -> None:
    """By those who ship its spool, at the same time here, to the log that it had written to itself."""
    log = place.folder / "log"
    place.configure({"spark.headwater.listeners": "log", "spark.headwater.log.dir": str(log)})
    reported_so_far = "import headwater.listeners\nassert headwater.listeners.install(spark).flush(60)\n"
    ended = place.python(SESSION + WRITE + reported_so_far + "import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
    assert ended.code == -signal.SIGKILL, ended.err
    flags = ["--spool-dir", str(place.folder / "spool"), "--conf", "spark.headwater.listeners=log"]
    ship = [str(BIN / "headwater"), "spool", "ship", *flags, "--conf", f"spark.headwater.log.dir={log}"]
    shippers = [place.start(ship) for _ in range(3)]
    for each in shippers:
        each.communicate(timeout=SECONDS)
    assert 0 in {each.returncode for each in shippers}
    again = place.run(*ship)
    assert again.code == 0, again.err
    codec = Codec()
    events = [event for record in records_of(log) if isinstance(event := codec.decode(record.value), Event)]
    by_id = {event.event_id: event for event in events}  # two that ship one spool may make a copy
    statuses = [event for event in by_id.values() if isinstance(event, JobStatusChanged)]
    assert [(event.status, event.inferred) for event in statuses] == [
        (JobStatus.RUNNING, False),
        (JobStatus.KILLED, True),
    ]
    assert any(isinstance(event, Committed) for event in by_id.values())
    assert len({event.producer for event in by_id.values()}) == 1
    assert not list((place.folder / "spool").glob("*/*.segment"))


@pytest.mark.long
def test_a_handled_error_on_the_way_of_stop_is_no_failure(place: Place) -> None:
    job = SESSION + "try:\n    1 / 0\nexcept ZeroDivisionError:\n    spark.stop()\nprint('goes on')\n"
    second = "SparkSession.builder.appName('second').getOrCreate().stop()"
    ended = place.python(job + second)
    assert ended.code == 0, ended.err
    assert ended.statuses() == ["orders ENDED", "second ENDED"]


@pytest.mark.long
def test_handlers_of_signals_that_users_have_are_theirs(place: Place) -> None:
    before = "import os, signal, sys\nsignal.signal(15, lambda *a: (print('mine'), sys.exit(4)))\n"
    ended = place.python(before + SESSION + WRITE + "os.kill(os.getpid(), 15)")
    assert (ended.code, ended.out) == (4, "mine\n"), ended.err
    assert ended.statuses() == ["orders KILLED"]
    assert ended.of("JobStatusChanged")[-1]["signal"] == signal.SIGTERM
    after = SESSION + (
        "import os, signal, sys\nold = signal.getsignal(15)\n"
        "def mine(*a):\n    old(*a); print('mine')\nsignal.signal(15, mine); os.kill(os.getpid(), 15)"
    )
    chained = place.python(after)
    assert (chained.code, chained.out) == (0, "mine\n"), chained.err
    assert chained.statuses() == ["orders ENDED"], "it went on after the signal, and nothing killed it"


@pytest.mark.long
def test_a_handler_that_is_set_later_and_stops_spark_on_its_way_out(place: Place) -> None:
    after = (
        "import os, signal, sys\nsignal.signal(15, lambda *a: sys.exit(4))\n"
        "try: os.kill(os.getpid(), 15); spark.range(3).count()\nfinally: spark.stop()"
    )
    ended = place.python(SESSION + after)
    assert ended.code == 4, ended.err
    assert ended.statuses() == ["orders KILLED"]
    terminal = ended.of("JobStatusChanged")[-1]
    assert (terminal["signal"], terminal["exit_code"]) == (signal.SIGTERM, 4)


@pytest.mark.long
def test_a_second_signal_ends_it_at_once(place: Place) -> None:
    """While the end of the run is reported, which hangs here for as long as nobody waits."""
    slow = "from headwater.listeners.installation import installation\n"
    slow += "installation.Installation.end.__defaults__ = (900,)\n"
    hangs = HANGING.replace("def drain(self, timeout):", "def drain(self, timeout): print('drains', flush=True);")
    name = place.script(hangs + slow + SESSION + "print('ready', flush=True)\ntime.sleep(900)")
    with place.start([PYTHON, name]) as process:
        assert process.stdout is not None
        for line in ("ready\n", "drains\n"):
            assert process.stdout.readline() == line
            process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=SECONDS)
    ended = place.ended(process.returncode, out, err)
    assert ended.code == -signal.SIGTERM
    assert ended.statuses() == [], "nobody waited for it"


@pytest.mark.long
def test_a_driver_that_is_killed_while_spark_works(place: Place) -> None:
    name = place.script(SESSION + WRITE + "print('ready', flush=True)\nspark.range(1 << 50).count()")
    with place.start([PYTHON, name]) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=SECONDS)
    ended = place.ended(process.returncode, out, err)
    assert ended.code == -signal.SIGTERM
    assert ended.statuses() == ["orders KILLED"]
    assert ended.of("JobStatusChanged")[-1]["signal"] == signal.SIGTERM


@pytest.mark.long
def test_it_tells_that_it_is_alive_and_that_it_is_gone(place: Place) -> None:
    place.configure({"spark.headwater.job.heartbeat": "1s"})
    job = (
        f"import time\ndeadline = time.monotonic() + 120\n{SESSION}told = open({str(place.reported)!r})\n"
        "while told.seek(0) or told.read().count('Heartbeat') < 2 and time.monotonic() < deadline: time.sleep(0.05)\n"
    )
    ended = place.python(job + "spark.stop()")
    assert ended.code == 0, ended.err
    beats = ended.of("Heartbeat")
    assert len(beats) >= 2
    assert {(beat["job"]["name"], beat["interval"]) for beat in beats} == {("orders", 1)}
    assert {beat["run"] for beat in beats} == {ended.of("JobStarted")[0]["run"]}
    assert ended.kinds()[-2:] == ["JobStatusChanged", "Closed"]
    assert ended.events[-1]["complete"] is True
    sequences = [event["sequence"] for event in ended.events]
    assert sequences == [*range(1, len(sequences) + 1)], "whoever sees a Heartbeat knows what is missing before it"


@pytest.mark.long
def test_without_pinned_threads_blocks_are_not_distinguished_and_the_rest_is_reported(place: Place) -> None:
    job = (
        SESSION
        + "import headwater.listeners as headwater\n"
        + "for _ in range(2):\n    with headwater.job('block') as entry: assert entry.run is None\n"
        + "with headwater.job('block'): spark.range(3).write.saveAsTable('t')\nspark.stop()\n"
    )
    ended = place.python(job, PYSPARK_PIN_THREAD="false")
    assert ended.code == 0, ended.err
    assert [event["job"]["name"] for event in ended.of("Committed")] == ["orders.spark_catalog.default.t"]
    assert ended.statuses() == ["orders ENDED"]
    assert ended.err.count("PYSPARK_PIN_THREAD is false") == 1


@pytest.mark.long
def test_three_contexts_one_after_the_other(place: Place) -> None:
    job = "".join(
        f"from pyspark.sql import SparkSession\nspark = SparkSession.builder.appName('app{n}').getOrCreate()\n"
        f"spark.range(3).write.saveAsTable('t{n}')\n"
        + ("spark.stop()\n" if n != 1 else "spark._jsc.stop(); spark.stop()\n")
        for n in range(3)
    )
    ended = place.python(job)
    assert ended.code == 0, ended.err
    assert ended.statuses() == ["app0 ENDED", "app1 ENDED", "app2 ENDED"]
    assert ended.kinds().count("Closed") == 3
    for of_one in ("application", "run", "producer"):
        assert len({event[of_one] for event in ended.events}) == 3
    made = {event["application"]: event["outputs"][0]["table"]["table"] for event in ended.of("Committed")}
    assert list(made.values())[::2] == ["t0", "t2"]


def test_nothing_that_hangs_is_waited_for(impatient: Place) -> None:
    job = (
        HANGING
        + SESSION
        + (
            "began = time.monotonic(); spark.stop(); print('stopped', time.monotonic() - began)\n"
            "spark = SparkSession.builder.appName('second').getOrCreate()\n"
            "import headwater.listeners\n"
            "with headwater.listeners.job('block'): pass\n"
        )
    )
    ended = impatient.python(job)
    assert ended.code == 0, ended.err
    stopped = float(ended.out.split()[1])
    assert stopped < PATIENCE, "some seconds, and Spark's own; else it never ends"
    assert ended.statuses() == ["orders ENDED", "block FINISHED", "second ENDED"]
    gaps = [event["detail"] for event in ended.of("Gap")]
    assert len(gaps) == 2
    assert all("of the last statements some may be missing" in detail for detail in gaps)


@pytest.mark.long
def test_a_start_that_hangs_is_not_waited_for(impatient: Place) -> None:
    impatient.configure({"spark.headwater.capture.wait": "500ms"})
    hangs = HANGING.replace("def start(self): pass", "def start(self): threading.Event().wait()")
    job = (
        hangs
        + SESSION
        + "print(spark.range(3).count())\nb = time.monotonic(); spark.stop()\nprint(time.monotonic() - b)"
    )
    ended = impatient.python(job)
    assert ended.code == 0, ended.err
    assert ended.out.splitlines()[0] == "3"
    assert float(ended.out.splitlines()[1]) < PATIENCE
    assert "headwater isn't ready after 0.5 s" in ended.err


@pytest.mark.long
def test_forked_children_are_inert(place: Place) -> None:
    job = SESSION + (
        "import os, sys, signal, multiprocessing\n"
        "import headwater.listeners as headwater\n"
        "from headwater.listeners.installation import contexts\n"
        "child = os.fork()\n"
        "if not child:\n"
        "    with headwater.job('in the child') as entry: assert entry.run is None\n"
        "    assert signal.getsignal(15) is signal.SIG_DFL\n"
        "    sys.exit(5)\n"
        "assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 5\n"
        "process = multiprocessing.get_context('fork').Process(target=sys.exit, args=(6,))\n"
        "process.start(); process.join(); assert process.exitcode == 6\n"
        "spark.range(3).write.saveAsTable('t'); spark.stop()\n"
    )
    ended = place.python(job)
    assert ended.code == 0, ended.err
    assert ended.statuses() == ["orders ENDED"]
    assert len({event["producer"] for event in ended.events}) == 1


def test_blocks_in_threads(place: Place) -> None:
    """What a thread does in a block is the block's; one started inside is in it if it inherits Spark's properties."""
    job = (
        SESSION
        + """
import threading
from pyspark import InheritableThread
import headwater.listeners as headwater

def write(name, job=None):
    if job is None:
        return spark.range(3).write.saveAsTable(name)
    with headwater.job(job):
        write(name)

with headwater.job("outer"):
    threads = [threading.Thread(target=write, args=(f"own{n}", f"job{n}")) for n in range(3)]
    threads += [InheritableThread(target=write, args=("inherited",)), threading.Thread(target=write, args=("plain",))]
    threads += [InheritableThread(target=write, args=("nested", "inner"))]
    for thread in threads: thread.start()
    write("outer")
    for thread in threads: thread.join()
write("after")
try:
    with headwater.job("failing"): raise KeyError("x")
except KeyError: pass
spark.sql("SET spark.headwater.job.name = set")
write("by_set")
spark.stop()
"""
    )
    ended = place.python(job)
    assert ended.code == 0, ended.err
    jobs = {event["outputs"][0]["table"]["table"]: event["job"]["name"] for event in ended.of("Committed")}
    assert jobs == {
        "own0": "job0",
        "own1": "job1",
        "own2": "job2",
        "inherited": "outer",
        "plain": "orders.spark_catalog.default.plain",
        "nested": "inner",
        "outer": "outer",
        "after": "orders.spark_catalog.default.after",
        "by_set": "set",
    }
    blocks = ["job0", "job1", "job2", "inner", "outer"]
    assert sorted(ended.statuses()) == sorted([*(f"{b} FINISHED" for b in blocks), "failing FAILED", "orders ENDED"])
    runs = {event["run"]: event["job"]["name"] for event in ended.of("JobStarted")}
    parents = {event["job"]["name"]: runs.get(event.get("parent_run")) for event in ended.of("JobStarted")}
    assert parents["inner"] == "outer"
    assert parents["outer"] == parents["job0"] == "orders"
    for event in ended.of("JobStatusChanged"):
        if event["status"] == "FINISHED":
            later = ended.events[ended.events.index(event) :]
            assert not [each for each in later if each["kind"] == "Committed" and each["run"] == event["run"]]
