"""Setting up a checkout, for real but in a small one that needs no network: what is believed, repaired and refused.

The small checkout has our tools/ and Makefile, a package built by a backend of its own, and locks of packages that
pip's configuration says are in a folder.
"""

from __future__ import annotations

import hashlib
import os
import select
import shutil
import signal
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.kit.checkout import ROOT
from tools import uv
from tools.environment import PythonEnvironment

pytestmark = [pytest.mark.slow, pytest.mark.sample(8)]

PYPROJECT = """
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
[project]
name = "small"
version = "1"
"""
BACKEND = """
import os, zipfile

def build_editable(directory, settings=None, metadata=None):
    if os.path.exists("hold"):
        with open("reached", "w") as pipe:  # a named pipe
            pipe.write("reached")
        open("hold").read()  # and another, which nobody ever writes to
    name = "small-1-py3-none-any.whl"
    with zipfile.ZipFile(os.path.join(directory, name), "w") as wheel:
        wheel.writestr("small-1.dist-info/METADATA", "Metadata-Version: 2.1\\nName: small\\nVersion: 1\\n")
        wheel.writestr("small-1.dist-info/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr("small-1.dist-info/RECORD", "")
    return name
"""
VERSION = ".".join(map(str, sys.version_info[:2]))


def make_wheel(folder: Path, name: str, files: dict[str, str]) -> str:
    """Write the wheel of version 1 and return its line in a lock file."""
    info = f"{name}-1.dist-info"
    about = {"METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n", "RECORD": ""}
    about["WHEEL"] = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    folder.mkdir(exist_ok=True)
    path = folder / f"{name}-1-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        for file, text in {**files, **{f"{info}/{each}": text for each, text in about.items()}}.items():
            entry = zipfile.ZipInfo(file)
            entry.external_attr = 0o100755 << 16
            wheel.writestr(entry, text)
    return f"{name}==1 \\\n    --hash=sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}\n"


class Checkout:
    """A small checkout and what its set-up did."""

    def __init__(self, root: Path) -> None:
        self.root = root
        own = ("PIP_", "UV_", "COV", "PYTHON", "PYENV", "HEADWATER_", "MAKE", "MFLAGS")
        self.env = {name: value for name, value in os.environ.items() if not name.startswith(own)}
        commands = root.parent / "commands"
        commands.mkdir(exist_ok=True)
        if not (commands / "uv").exists():
            (commands / "uv").symlink_to(Path(sys.executable).with_name("uv"))
        self.env |= {
            "PATH": os.pathsep.join((str(commands), "/usr/bin", "/bin")),
            "PIP_CONFIG_FILE": os.devnull,
            "PIP_FIND_LINKS": str(root.parent / "wheels"),
            "PIP_NO_INDEX": "1",
            "UV_CACHE_DIR": str(root.parent / "cache"),
            "UV_PYTHON": "a variable that must count for nothing",
            "PYTHON": sys.executable,
        }

    def lock(self, line: str, *pins: str) -> None:
        (self.root / f"requirements/{line}.lock").write_text("".join(pins))

    def start(self, *arguments: str, **env: str) -> subprocess.Popen[str]:
        pipe = subprocess.PIPE
        return subprocess.Popen(
            [sys.executable, "-m", "tools.environment", *arguments],
            cwd=self.root,
            env=self.env | env,
            stdout=pipe,
            stderr=pipe,
            text=True,
            start_new_session=True,
        )

    def set_up(self, *arguments: str, **env: str) -> str:
        process = self.start(*arguments, **env)
        out, err = process.communicate(timeout=100)
        assert process.returncode == 0, out + err
        return err

    def refuse(self, *arguments: str, **env: str) -> str:
        process = self.start(*arguments, **env)
        _, err = process.communicate(timeout=100)
        assert process.returncode == 1
        assert "Traceback" not in err
        assert not (self.root / ".venv/.finished.json").exists()
        return err

    def installed(self, directory: str = ".venv") -> set[str]:
        infos = (self.root / directory).glob("lib/*/site-packages/*-1.dist-info")
        return {path.name.removesuffix("-1.dist-info") for path in infos}


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    root = tmp_path / "small checkout"
    shutil.copytree(ROOT / "tools", root / "tools", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "Makefile", root)
    (root / "requirements").mkdir()
    (root / "pyproject.toml").write_text(PYPROJECT)
    (root / "backend.py").write_text(BACKEND)
    small = Checkout(root)
    for line, package in {"dev": "one", "spark-9.9": "two", "demo": "three"}.items():
        small.lock(line, make_wheel(tmp_path / "wheels", package, {f"{package}.py": ""}))
    return small


@pytest.mark.slow
def test_the_second_time_does_nothing(checkout: Checkout) -> None:
    assert ".venv is ready" in checkout.set_up()
    assert checkout.installed() == {"one", "small"}
    before = (checkout.root / ".venv/.finished.json").stat().st_mtime_ns
    assert checkout.set_up() == ""
    assert checkout.set_up(PYTHON="") == ""
    made = subprocess.run(["make", ".venv"], cwd=checkout.root, env=checkout.env, capture_output=True, check=True)
    assert made.stdout + made.stderr == b""
    assert (checkout.root / ".venv/.finished.json").stat().st_mtime_ns == before


@pytest.mark.slow
def test_each_line_and_each_python_has_its_own_environment(checkout: Checkout) -> None:
    checkout.set_up("spark-9.9")
    checkout.set_up("demo", "--python", VERSION, PYTHON="no-such-python")
    assert checkout.installed(".venv-spark-9.9") == {"one", "two", "small"}
    assert checkout.installed(f".venv-{VERSION}-demo") == {"three", "small"}
    assert not (checkout.root / ".venv").exists()


@pytest.mark.slow
def test_a_changed_lock_is_installed_into_what_is_there(checkout: Checkout) -> None:
    checkout.set_up()
    there = checkout.root / ".venv/there"
    there.touch()
    checkout.lock("dev", (checkout.root / "requirements/spark-9.9.lock").read_text())
    checkout.set_up()
    assert checkout.installed() == {"two", "small"}
    assert there.exists()


@pytest.mark.slow
def test_another_python_makes_it_anew(checkout: Checkout) -> None:
    checkout.set_up()
    there = checkout.root / ".venv/there"
    there.touch()
    assert ".venv is ready" in checkout.set_up(PYTHON=VERSION, PATH=f"{sys.base_prefix}/bin:{checkout.env['PATH']}")
    assert not there.exists()


@pytest.mark.slow
def test_a_python_that_is_gone_is_replaced(checkout: Checkout) -> None:
    checkout.set_up()
    (checkout.root / ".venv/bin/python").unlink()
    assert ".venv is ready" in checkout.set_up()


@pytest.mark.slow
@pytest.mark.parametrize("interrupted", ["first", "second"])
def test_an_interrupted_set_up_is_not_believed(checkout: Checkout, interrupted: str) -> None:
    """Neither is an update that broke off, when the lock file is as it was before."""
    lock = checkout.root / "requirements/dev.lock"
    before = lock.read_text()
    if interrupted == "second":
        checkout.set_up()
        checkout.lock("dev", (checkout.root / "requirements/spark-9.9.lock").read_text())
    for pipe in ("reached", "hold"):
        os.mkfifo(checkout.root / pipe)
    # With another cache, as uv keeps what it has built.
    process = checkout.start(UV_CACHE_DIR=str(checkout.root.parent / "another cache"))
    with (checkout.root / "reached").open("r+b", buffering=0) as reached:  # for writing too, so that it opens at once
        assert select.select([reached], [], [], 60)[0]
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    for pipe in ("reached", "hold"):
        (checkout.root / pipe).unlink()
    assert checkout.installed() == ({"one"} if interrupted == "first" else {"two"})
    left_over = checkout.root / ".venv/lib/half"
    left_over.touch()
    lock.write_text(before)
    checkout.set_up()
    assert checkout.installed() == {"one", "small"}
    assert not left_over.exists()


@pytest.mark.slow
def test_two_at_once_set_up_once(checkout: Checkout) -> None:
    both = [checkout.start() for _ in range(2)]
    outputs = [process.communicate(timeout=100)[1] for process in both]
    assert [process.returncode for process in both] == [0, 0], outputs
    assert sum(".venv is ready" in output for output in outputs) == 1
    assert checkout.installed() == {"one", "small"}


@pytest.mark.slow
def test_a_moved_checkout_is_made_anew(checkout: Checkout) -> None:
    checkout.set_up()
    moved = Checkout(checkout.root.rename(checkout.root.with_name("elsewhere")))
    moved.set_up()
    assert "elsewhere/.venv" in (moved.root / ".venv/bin/activate").read_text()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("pin", "said"),
    [
        ("no-such-thing==1 --hash=sha256:" + "0" * 64, "no-such-thing"),
        ("one==1 --hash=sha256:" + "0" * 64, "Hash mismatch"),
        ("one==1", "--require-hashes"),
    ],
)
def test_what_is_not_there_or_not_as_it_was_locked_is_refused(checkout: Checkout, pin: str, said: str) -> None:
    checkout.lock("dev", pin)
    err = checkout.refuse()
    assert said in err
    assert ".venv can't be set up.\nPackages come from the index that pip is configured for" in err


@pytest.mark.slow
def test_a_python_that_is_not_there_is_reported_by_its_name(checkout: Checkout) -> None:
    err = checkout.refuse(PYTHON="no-such-python")
    assert "no-such-python" in err
    assert "Install Python 3.10, 3.11 or 3.12" in err


def test_no_python_at_all_gets_one_clear_line(tmp_path: Path) -> None:
    make = shutil.which("make")
    assert make
    shutil.copy(ROOT / "Makefile", tmp_path)
    old = tmp_path / "python3"
    old.write_text("#!/bin/sh\nexit 1\n")  # a Python too old for what it is asked
    old.chmod(0o755)
    command = [make, "SHELL=/bin/sh", "check"]
    done = subprocess.run(
        command, cwd=tmp_path, env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stderr.splitlines()[0].startswith("no Python found: install Python 3.10, 3.11 or 3.12")


def test_environments_are_named_by_python_and_line() -> None:
    names = [
        PythonEnvironment(*each).directory.name for each in (("dev", ""), ("spark-9.9", ""), ("spark-9.9", "3.12"))
    ]
    assert names == [".venv", ".venv-spark-9.9", ".venv-3.12-spark-9.9"]


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder on the PATH of a machine whose pip finds one package: uv, a command that says hello."""
    commands, wheels = tmp_path / "commands", tmp_path / "wheels"
    commands.mkdir()
    pin = make_wheel(wheels, "uv", {"uv-1.data/scripts/uv": "#!/bin/sh\necho hello\n"})
    (tmp_path / "checkout/requirements").mkdir(parents=True)
    neighbours = [f"{name}==1 \\\n    --hash=sha256:00\n" for name in ("uritemplate", "uvicorn")]
    (tmp_path / "checkout/requirements/dev.lock").write_text(pin.join(neighbours))
    monkeypatch.setattr(uv, "ROOT", tmp_path / "checkout")
    for name, value in {
        "PATH": commands,
        "HEADWATER_CACHE": tmp_path / "cache",
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_FIND_LINKS": wheels,
        "PIP_NO_INDEX": 1,
        "PIP_USER": 1,  # which pip refuses beside --target
        "PYENV_ROOT": tmp_path / "pyenv",
    }.items():
        monkeypatch.setenv(name, str(value))
    return commands


def pretend_uv(folder: Path, status: int = 0) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    command = folder / "uv"
    command.write_text(f"#!/bin/sh\nexit {status}\n")
    command.chmod(0o755)
    return command


def test_the_uv_on_the_path_is_taken(bare: Path) -> None:
    there = pretend_uv(bare)
    assert uv.find() == there


def test_a_uv_in_this_checkout_is_not_taken(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = pretend_uv(uv.ROOT / ".venv/bin").parent
    monkeypatch.setenv("PATH", f"{own}{os.pathsep}{bare}")
    there = pretend_uv(bare)
    assert uv.find() == there


@pytest.mark.parametrize("has_pip", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_without_a_usable_uv_the_locked_one_is_fetched_once(
    bare: Path, monkeypatch: pytest.MonkeyPatch, *, has_pip: bool
) -> None:
    pretend_uv(bare, status=2)  # too old, or a command of pyenv's for another Python
    if not has_pip:
        monkeypatch.setattr(uv, "_has_pip", lambda: False)
    found = uv.find()
    assert found.is_relative_to(bare.parent / "cache")
    assert subprocess.check_output([found]) == b"hello\n"
    assert uv.environment(found)["UV_NO_INDEX"] == "1"
    shutil.rmtree(bare.parent / "wheels")
    assert uv.find() == found


def test_a_uv_of_another_hash_is_refused_and_nothing_stays(bare: Path) -> None:
    make_wheel(bare.parent / "wheels", "uv", {"uv-1.data/scripts/uv": "#!/bin/sh\necho evil\n"})
    with pytest.raises(subprocess.CalledProcessError):
        uv.find()
    assert list((bare.parent / "cache").iterdir()) == []


def test_the_pythons_of_pyenv_are_found_last(bare: Path) -> None:
    (bare.parent / "pyenv/versions/3.12.1/bin").mkdir(parents=True)
    path = uv.environment(pretend_uv(bare))["PATH"].split(os.pathsep)
    assert path == [str(bare), str(bare.parent / "pyenv/versions/3.12.1/bin")]
