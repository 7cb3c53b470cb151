"""The hook alone, in interpreters of their own, on a pyspark of a few lines."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

import headwater.listeners.hook as hook_module
from headwater.listeners.installation import factories

pytestmark = pytest.mark.slow

PTH = Path(hook_module.__file__).with_name("hook.pth")
OURS = "print(sorted(m for m in sys.modules if m.startswith('headwater')))"
HOOK_ONLY = "['headwater', 'headwater.listeners', 'headwater.listeners.hook']"
CONTEXT = """
class _Conf(dict):
    def toDebugString(self): return "\\n".join(f"{key}={value}" for key, value in self.items())
    contains = dict.__contains__

class SparkContext:
    def __init__(self, **conf):
        self._do_init(conf)
    def _do_init(self, conf):
        '''Of Spark.'''
        self._conf = _Conf(conf)
    def stop(self): pass
"""
INSTALLATION = """
import gc
def begin(context):
    print("begun", type(context).__name__)

def at_exit(): pass
"""
MAKE = "from pyspark import SparkContext; SparkContext(**{'spark.headwater.enabled': %r})"
Python = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder with a pyspark that can be imported from it."""
    package = tmp_path / "site" / "pyspark"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("from pyspark.context import SparkContext")
    (package / "context.py").write_text(CONTEXT)
    return package.parent


@pytest.fixture
def python(site: Path) -> Python:
    """Runs code in a new interpreter that starts with our `.pth` line, as one with headwater installed does."""

    def run(
        code: str, *flags: str, env: Mapping[str, str] | None = None, path: Path = site
    ) -> subprocess.CompletedProcess[str]:
        begin = f"import sys; sys.path.insert(0, {str(path)!r})\n{PTH.read_text()}"
        return subprocess.run(
            [sys.executable, *flags, "-c", f"{begin}\n{code}"],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
            env={**os.environ, **(env or {})},
        )

    return run


NAME = "headwater.listeners.installation"
BEGUN = ("begun", "SparkContext")
FAKED = f"import types; m = types.ModuleType({NAME!r}); exec({INSTALLATION!r}, m.__dict__); sys.modules[m.__name__] = m"


def test_an_enabled_context_is_begun(python: Python) -> None:
    done = python(f"{FAKED}\n{MAKE % 'true'}")
    assert (done.stdout, done.stderr) == ("begun SparkContext\n", "")


@pytest.mark.parametrize("value", ["false", "False", "0", "off", ""])
def test_a_disabled_one_loads_nothing(python: Python, value: str) -> None:
    done = python(f"{MAKE % value}; {OURS}")
    assert (done.stdout.strip(), done.stderr) == (HOOK_ONLY, "")


WAITING = """
import gc, threading

beside = []
class Thread(threading.Thread):
    def start(self):
        beside.append(self)
        super().start()
threading.Thread = Thread

class SparkConf(dict): pass

class SparkContext:
    class _jvm:
        class System: getProperty = {}.get
    def __init__(self, **conf):
        self._do_init(SparkConf(conf))
    def _do_init(self, conf):
        self._conf = conf
        for each in beside: each.join()
        print(len(beside), gc.isenabled())
        beside.clear()
    def stop(self): pass
"""
PREPARING = (
    INSTALLATION
    + """
def prepare(listeners):
    print("imported", listeners, gc.isenabled())
"""
)


def test_what_is_installed_is_imported_while_spark_makes_the_context(python: Python, site: Path) -> None:
    """By one thread, and for an application that has it enabled; without Python's collector, which is then as it was.
    No other test sees who imports."""
    (site / "pyspark" / "context.py").write_text(WAITING)
    finder = f"""
import importlib.util
class Finder:
    def find_spec(self, name, path=None, target=None):
        return importlib.util.spec_from_loader(name, self) if name == {NAME!r} else None
    def create_module(self, spec): return None
    def exec_module(self, module): exec({PREPARING!r}, module.__dict__)
sys.meta_path.insert(0, Finder())
"""
    for before, is_collecting in (("", "True"), ("import gc; gc.disable()\n", "False")):
        done = python(f"{before}{finder}\n{MAKE % 'true'}\n{MAKE % 'true'}\n{MAKE % 'false'}")
        imported, others = ["imported", "None", "False", "1", is_collecting], ["0", is_collecting]
        assert (done.stdout.split(), done.stderr) == ([*imported, *BEGUN, *others, *BEGUN, *others], "")


@pytest.mark.parametrize(
    ("asked", "imported"), [(None, ["log"]), ("kafka, audit, mine=acme.audit:Factory", ["kafka"]), ("acme.audit:F", [])]
)
def test_our_own_listeners_are_imported_too_and_nobody_elses(
    asked: str | None, imported: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is imported later, Python looks for in the application's jars, too. But others' modules may hang."""
    found: list[str] = []
    monkeypatch.setattr(factories, "load", lambda _group, name: found.append(name))
    factories.prepare(asked)
    assert found == imported


def test_a_value_that_is_neither_is_reported(python: Python) -> None:
    done = python(f"{MAKE % 'ture'}; {OURS}")
    assert done.stdout.strip() == HOOK_ONLY
    assert "spark.headwater.enabled is neither true nor false" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("spark.headwtaer.enabled", "there is no key spark.headwtaer.enabled: did you mean spark.headwater.enabled?"),
        ("headwater.enabled", "there is no key headwater.enabled: did you mean spark.headwater.enabled?"),
        ("spark.headwater.enabeld", "there is no key spark.headwater.enabeld: did you mean spark.headwater.enabled?"),
    ],
)
def test_a_misspelt_switch_is_reported(python: Python, key: str, words: str) -> None:
    make = f"from pyspark import SparkContext; SparkContext(**{{{key!r}: 'true', 'spark.x': 'a\\nb'}})"
    done = python(make)
    assert (done.stdout, done.stderr) == ("", f"{words}\n")


@pytest.mark.parametrize(
    "conf",
    [
        {"spark.headers.enabled": "true", "spark.hadoop.fs.x": "y", "spark.app.name": "headwater"},
        {"spark.headwater.enabled": "false", "spark.headwtaer.enabled": "true"},
        {"spark.a": "b\nspark.headwtaer.enabled=true"},
        {},
    ],
    ids=["others", "off", "in a value", "nothing"],
)
def test_others_keys_and_what_is_off_are_left_alone(python: Python, conf: dict[str, str]) -> None:
    done = python(f"from pyspark import SparkContext; SparkContext(**{conf!r})")
    assert (done.stdout, done.stderr) == ("", "")


def test_without_spark_nothing_of_ours_but_the_hook_is_there(python: Python) -> None:
    done = python(f"import json, email; {OURS}")
    assert (done.stdout.strip(), done.stderr) == (HOOK_ONLY, "")


def test_the_hook_brings_no_module_that_an_interpreter_has_not_loaded_anyway() -> None:
    listing = "print(*sorted(sys.modules))"
    roots = "; ".join(f"sys.path.append({root!r})" for root in sys.path if Path(root, "headwater").is_dir())
    bare = f"import sys; {roots}\n{listing}"
    hooked = f"import sys; {roots}\n{PTH.read_text()}\n{listing}"
    before, after = (
        set(
            subprocess.run(
                [sys.executable, "-S", "-c", code], capture_output=True, text=True, check=True
            ).stdout.split()
        )
        for code in (bare, hooked)
    )
    ours = {"headwater", "headwater.listeners", "headwater.listeners.hook"}
    assert ours <= after
    started_with_site = {
        "os",
        "stat",
        "_stat",
        "genericpath",
        "posixpath",
        "os.path",
        "_collections_abc",
        "abc",
        "_abc",
    }
    assert after - before - ours <= started_with_site | {"atexit", "__future__"}


def test_spark_4_has_its_context_elsewhere(site: Path, python: Python) -> None:
    core = site / "pyspark" / "core"
    core.mkdir()
    (core / "__init__.py").write_text("")
    (site / "pyspark" / "context.py").rename(core / "context.py")
    (site / "pyspark" / "__init__.py").write_text(
        "import sys\nfrom pyspark.core.context import SparkContext\nfrom pyspark.core import context\n"
        "sys.modules['pyspark.context'] = context"
    )
    done = python(f"{FAKED}\n{MAKE % 'true'}")
    assert (done.stdout, done.stderr) == ("begun SparkContext\n", "")


def test_a_pyspark_in_an_archive(site: Path, python: Python, tmp_path: Path) -> None:
    archive = tmp_path / "pyspark.zip"
    with zipfile.ZipFile(archive, "w") as file:
        for name in ("__init__.py", "context.py"):
            file.write(site / "pyspark" / name, f"pyspark/{name}")
    loader = "c = sys.modules['pyspark.context']; print(*(type(l).__name__ for l in (c.__loader__, c.__spec__.loader)))"
    done = python(f"{FAKED}\n{MAKE % 'true'}; {loader}", path=archive)
    assert (done.stdout, done.stderr) == ("begun SparkContext\nzipimporter zipimporter\n", "")


def test_the_module_looks_as_it_does_without_us(python: Python) -> None:
    code = (
        "import inspect, pyspark.context as c; print(type(c.__loader__).__name__, type(c.__spec__.loader).__name__, "
        "'Of Spark' in inspect.getsource(c), inspect.signature(c.SparkContext._do_init))"
    )
    assert python(code).stdout == "SourceFileLoader SourceFileLoader True (self, conf)\n"


def test_in_sparks_python_workers_nothing_is_put_in_place(python: Python) -> None:
    code = (
        "import headwater.listeners.hook as h, pyspark; "
        "print(h._finder in sys.meta_path, pyspark.SparkContext._do_init.__module__)"
    )
    worker = python(code, env={"PYTHON_WORKER_FACTORY_SECRET": "x"})
    assert worker.stdout == "False pyspark.context\n"
    driver = python(code)
    assert driver.stdout == "True headwater.listeners.hook\n"


@pytest.mark.parametrize(
    "faked",
    [
        FAKED.replace(repr(INSTALLATION), repr("def begin(context): raise RuntimeError('broken')")),
        FAKED.replace(repr(INSTALLATION), repr("begin = 3")),
        f"sys.modules[{NAME!r}] = None",
    ],
    ids=["raises", "is nonsense", "can't be imported"],
)
def test_what_is_broken_of_ours_is_reported_and_the_job_goes_on(python: Python, faked: str) -> None:
    done = python(f"{faked}\n{MAKE % 'true'}; print('the job goes on')")
    assert done.stdout == "the job goes on\n"
    assert "can't be installed" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "context",
    ["", "SparkContext = None", "class SparkContext: pass", "class SparkContext:\n  __slots__ = ()\n  _do_init = 3"],
)
def test_a_pyspark_that_is_no_pyspark_can_be_imported(site: Path, python: Python, context: str) -> None:
    (site / "pyspark" / "__init__.py").write_text("import pyspark.context")
    (site / "pyspark" / "context.py").write_text(context)
    done = python("import pyspark; print('imported')")
    assert (done.stdout, done.stderr) == ("imported\n", "")


def test_an_import_that_fails_fails_as_it_does_without_us(site: Path, python: Python) -> None:
    (site / "pyspark" / "context.py").write_text("raise ImportError('py4j is missing')")
    done = python("import pyspark")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == "ImportError: py4j is missing"


def test_a_line_without_headwater_behind_it_is_silent(tmp_path: Path) -> None:
    """Uninstalled by hand, or a virtual environment copied without it."""
    away = "sys.path = [p for p in sys.path if 'site-packages' not in p]"
    code = f"import sys; {away}\n{PTH.read_text()}\nprint('started')"
    done = subprocess.run([sys.executable, "-S", "-I", "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("started\n", "")


def test_unwatching_gives_everything_back(python: Python) -> None:
    code = (
        "import headwater.listeners.hook as h, pyspark.context as c; h.unwatch(); "
        "print(h._finder in sys.meta_path, c.SparkContext._do_init.__module__); h.watch(); h.watch(); "
        f"print(sys.meta_path.count(h._finder), c.SparkContext._do_init.__module__)\n{FAKED}\n{MAKE % 'true'}"
    )
    done = python(code)
    assert done.stdout.splitlines() == ["False pyspark.context", "1 headwater.listeners.hook", "begun SparkContext"]


def test_somebody_elses_patch_over_ours_stays(python: Python) -> None:
    code = (
        "import headwater.listeners.hook as h\nfrom pyspark import SparkContext\nours = SparkContext._do_init\n"
        "def theirs(self, conf):\n    print('theirs'); ours(self, conf)\nSparkContext._do_init = theirs\n"
        f"h.unwatch()\n{FAKED}\n{MAKE % 'true'}\nh.watch()\n{MAKE % 'true'}"
    )
    assert python(code).stdout.splitlines() == ["theirs", "theirs", "begun SparkContext"]


def test_what_users_registered_for_exit_before_there_was_a_context_is_called_first(python: Python) -> None:
    script = INSTALLATION.replace("def at_exit(): pass", "def at_exit(): print('ended')")
    faked = FAKED.replace(repr(INSTALLATION), repr(script))
    code = (
        f"import atexit; atexit.register(print, 'theirs')\n{faked}\n{MAKE % 'true'}\n"
        "import headwater.listeners.hook as h; h.watch_exit()"
    )
    assert python(code).stdout.splitlines() == ["begun SparkContext", "theirs", "ended"]
