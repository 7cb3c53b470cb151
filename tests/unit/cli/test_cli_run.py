"""`headwater run` beside `python`: what a script sees, prints and ends with is the same. No Spark here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

import pytest

from headwater.cli import run as command
from headwater.cli.app import main

HEADWATER = str(Path(sys.executable).with_name("headwater"))
LOOK = (
    "import sys, os\n"
    "print(sys.argv, sys.path[0], sys.path[1] == os.path.dirname(os.__file__) or sys.path[1:3])\n"
    "print(__name__, __file__, __package__, getattr(__spec__, 'name', 0), vars(sys.modules['__main__']) is globals())"
)
SCRIPTS = {
    "looks around": LOOK,
    "ends well": "print('well')",
    "raises": "def f():\n    raise ValueError('größe')\n\nf()",
    "raises from": "try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    raise KeyError('x') from e",
    "exits": "import sys; sys.exit()",
    "exits with 3": "raise SystemExit(3)",
    "exits with words": "raise SystemExit('no orders today')",
    "exits with -1": "raise SystemExit(-1)",
    "is interrupted": "raise KeyboardInterrupt",
    "is no Python": "print('a'\nx = 1",
    "has a hook": "import sys\nsys.excepthook = lambda *a: print('hook', a[0].__name__, a[2].tb_lineno)\n1 / 0",
    "breaks a pipe": "raise BrokenPipeError(32, 'x')",
    "closes its output": "import sys; print('a'); sys.stdout.close()",
    "has another encoding": "# -*- coding: latin-1 -*-\nprint('gr\xfc\xdfe')",
    "goes on in a thread": (
        "import threading, atexit\natexit.register(print, 'at exit')\nmine = 'mine'\nmain = threading.Event()\n"
        "def late():\n    main.wait()\n    print(mine, __name__)\nthreading.Thread(target=late).start()\n"
        "print('main is through'); main.set()"
    ),
    "pickles its own": (
        "import pickle\nclass Mine: pass\nprint(type(pickle.loads(pickle.dumps(Mine()))) is Mine, Mine.__module__)"
    ),
    "starts processes": (
        "import multiprocessing\ndef double(n): return 2 * n\nif __name__ == '__main__':\n"
        "    with multiprocessing.get_context('spawn').Pool(1) as pool: print(pool.map(double, [1, 2]))"
    ),
}


def both(tmp_path: Path, *words: str, encoding: str = "utf-8") -> tuple[list[object], list[object]]:
    """What `python …` and `headwater run …` print and end with."""
    return _ended([sys.executable, *words], tmp_path, encoding), _ended([HEADWATER, "run", *words], tmp_path, encoding)


def _ended(words: list[str], folder: Path, encoding: str) -> list[object]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")}
    done = subprocess.run(words, cwd=folder, capture_output=True, check=False, timeout=60, env=clean)
    return [done.returncode, done.stdout.decode(encoding), done.stderr.decode(encoding)]


@pytest.mark.slow
@pytest.mark.sample(6)
@pytest.mark.parametrize("script", SCRIPTS.values(), ids=SCRIPTS)
def test_a_script_runs_as_it_does_without_us(tmp_path: Path, script: str) -> None:
    encoding = "latin-1" if "latin-1" in script else "utf-8"
    (tmp_path / "job.py").write_text(script, encoding)
    python, ours = both(tmp_path, "job.py", "--conf", "x", "-m", "--", "--help")
    assert ours == python


@pytest.mark.slow
def test_a_module_a_folder_and_an_archive_run_as_they_do_without_us(tmp_path: Path) -> None:
    package = tmp_path / "package"
    package.mkdir()
    for name, text in {
        "__init__.py": "",
        "__main__.py": LOOK,
        "job.py": f"from . import __name__ as n\nprint(n)\n{LOOK}",
    }.items():
        (package / name).write_text(text)
    with zipfile.ZipFile(tmp_path / "app.zip", "w") as archive:
        archive.writestr("__main__.py", LOOK)
    for words in (
        ["-m", "package"],
        ["-m", "package.job", "--conf"],
        ["package"],
        ["app.zip", "-x"],
        ["package/job.py"],
    ):
        python, ours = both(tmp_path, *words)
        assert ours[:2] == python[:2], words


@pytest.mark.slow
def test_a_link_is_followed_to_where_the_script_is(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "job.py").write_text(LOOK)
    (tmp_path / "link.py").symlink_to(tmp_path / "real" / "job.py")
    python, ours = both(tmp_path, "link.py")
    assert ours == python


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "say what to run"),
        (["nowhere.py"], "can't open nowhere.py: No such file"),
        (["-m"], "say which module"),
        (["-m", "nowhere"], "there is no module nowhere"),
        (["-m", "nowhere.job"], "can't find the module nowhere.job"),
        (["-m", "headwater"], "headwater/__main__.py"),
        (["--conf", "spark.x", "job.py"], "'spark.x' isn't KEY=VALUE"),
        (["--cnf", "a=b", "job.py"], "--cnf"),
        (["--connect", "job.py"], "what would job.py do? Behind -- stand flags of spark-submit"),
        (["--connect", "--class", "a.B"], "--connect and --class"),
        (["--connect", "--thrift", "--port", "1"], "spark.connect.grpc.binding.port and spark.hadoop.hive.server2"),
        (
            ["--connect", "--port", "70000"],
            "'70000' is no port: a number from 1 to 65535",
        ),
        (["--port", "1", "job.py"], "--port is for --connect or --thrift"),
        (["--class", "a.B"], "say the jar that a.B is in"),
    ],
)
def test_what_cannot_be_run_is_reported(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    with pytest.raises(SystemExit) as ended:
        main(["run", *words])
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "own", "rest"),
    [
        (["job.py", "--conf", "a=b"], [], ["job.py", "--conf", "a=b"]),
        (["--conf", "a=b", "job.py", "-m"], ["--conf", "a=b"], ["job.py", "-m"]),
        (["--conf=a=b", "-m", "job"], ["--conf=a=b"], ["-m", "job"]),
        (["--properties-file", "spark.conf", "job.py"], ["--properties-file", "spark.conf"], ["job.py"]),
        (["--", "--help"], [], ["--help"]),
        (["--help", "job.py"], ["--help"], ["job.py"]),
        (["--connect", "--port", "1", "--", "--master", "x"], ["--connect", "--port", "1"], ["--master", "x"]),
        (["--class", "a.B", "app.jar", "--port"], ["--class", "a.B"], ["app.jar", "--port"]),
    ],
)
def test_what_stands_behind_the_script_is_the_scripts(words: list[str], own: list[str], rest: list[str]) -> None:
    assert command.split(words) == (own, rest)


@pytest.mark.slow
def test_the_configuration_goes_the_way_that_spark_submit_takes(tmp_path: Path) -> None:
    show = "import os, shlex; words = shlex.split(os.environ['PYSPARK_SUBMIT_ARGS'])"
    (tmp_path / "job.py").write_text(f"{show}; print(open(words.pop(1)).read() + ' '.join(words))")
    (tmp_path / "spark.conf").write_text("spark.app.name of the file\nspark.jars one.jar\n")
    (tmp_path / "other.conf").write_text("spark.jars other.jar\nspark.x y\n")
    said = ["--properties-file", "spark.conf", "--conf", "spark.app.name=my app"]
    said += ["--conf", "spark.headwater.listeners=log", "job.py"]
    env = {**os.environ, "PYSPARK_SUBMIT_ARGS": "--packages a:b:1 --properties-file other.conf pyspark-shell"}
    done = subprocess.run([HEADWATER, "run", *said], cwd=tmp_path, env=env, capture_output=True, text=True, check=True)
    *properties, words = done.stdout.strip().splitlines()
    assert words == "--properties-file --packages a:b:1 pyspark-shell"
    expected = {"spark.app.name=my app", "spark.headwater.enabled=true", "spark.headwater.listeners=log"}
    assert set(properties) == {"spark.jars=one.jar", "spark.x=y", *expected}


@pytest.mark.parametrize("look", ["text", "json"])
def test_where_servers_listen_is_one_document_when_all_are_ready(
    look: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """And it is printed while they serve: nobody would wait for their end to come to them."""
    from headwater.listeners import hosting

    def serve(
        servers: Sequence[hosting.HostedServer], _: hosting.Launch, ready: Callable[[str, str], None]
    ) -> NoReturn:
        for number, server in enumerate(servers, 1):
            assert look == "text" or capsys.readouterr().out == ""
            ready(server.name, f"127.0.0.1:{number}")
        found.append(capsys.readouterr().out)
        raise SystemExit(0)

    found: list[str] = []
    monkeypatch.setattr(hosting, "serve", serve)
    with pytest.raises(SystemExit, match="0"):
        main(["-o", look, "run", "--connect", "--thrift"])
    if look == "json":
        assert json.loads(found[0]) == {"connect": {"address": "127.0.0.1:1"}, "thrift": {"address": "127.0.0.1:2"}}
    assert found[0].count("127.0.0.1") == 2


@pytest.mark.slow
@pytest.mark.parametrize(
    "script",
    [
        "SparkSession.builder.remote('sc://localhost').getOrCreate()",
        "from pyspark.sql.connect.session import SparkSession as Remote; Remote('sc://localhost')",
        "import os; os.environ['SPARK_REMOTE'] = 'sc://localhost'; SparkSession.builder.getOrCreate()",
    ],
)
def test_a_remote_session_has_no_lens_and_is_refused(tmp_path: Path, script: str) -> None:
    """It finds a job that reads and writes the real tables although a lens was asked for."""
    job = tmp_path / "job.py"
    job.write_text(f"from pyspark.sql import SparkSession\n{script}\nprint('made')")
    done = subprocess.run(
        [HEADWATER, "run", "--pin", "lake.ods.orders@8", str(job)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert "headwater run: a session of Spark Connect can't have a lens" in done.stderr
