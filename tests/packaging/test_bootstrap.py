"""Setting up a checkout, for real but in a small one that needs no network: what is believed, repaired and refused.

The small checkout has our tools/ and Makefile, a package built by a backend of its own, and locks of nothing; the
network is switched off, so that uv can't be had and pip does the work.
"""

from __future__ import annotations

import ast
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.packaging.house import ROOT

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
    with open("builds", "a") as file:
        file.write("built\\n")
    if os.path.exists("hold"):
        with open("reached", "w") as pipe:  # a named pipe: blocks until the test reads
            pipe.write("reached")
        open("hold").read()  # and another, which nobody ever writes to
    name = "small-1-py3-none-any.whl"
    with zipfile.ZipFile(os.path.join(directory, name), "w") as wheel:
        wheel.writestr("small-1.dist-info/METADATA", "Metadata-Version: 2.1\\nName: small\\nVersion: 1\\n")
        wheel.writestr("small-1.dist-info/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr("small-1.dist-info/RECORD", "")
    return name
"""
COMMAND = [sys.executable, "-m", "tools.bootstrap"]


class Checkout:
    """A small checkout and what its set-up did."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.env = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "UV_", "COV"))}
        self.env |= {"PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": os.devnull, "HEADWATER_CACHE": str(root / "cache")}
        self.env.pop("PYTHON", None)

    def start(self, level: str, **env: str) -> subprocess.Popen[str]:
        pipe = subprocess.PIPE
        return subprocess.Popen(
            [*COMMAND, level],
            cwd=self.root,
            env=self.env | env,
            stdout=pipe,
            stderr=pipe,
            text=True,
            start_new_session=True,
        )

    def set_up(self, level: str = "base", **env: str) -> str:
        process = self.start(level, **env)
        out, err = process.communicate(timeout=100)
        assert process.returncode == 0, out + err
        return out

    @property
    def builds(self) -> int:
        path = self.root / "builds"
        return len(path.read_text().splitlines()) if path.exists() else 0

    @property
    def stamp(self) -> dict[str, str]:
        content: dict[str, str] = json.loads((self.root / ".venv/.finished.json").read_text())
        return content


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    root = tmp_path / "small checkout"
    shutil.copytree(ROOT / "tools", root / "tools", ignore=shutil.ignore_patterns("__pycache__"))
    (root / "requirements").mkdir()
    for name in ("base", "demo", "dev", "build", "virtualenv"):
        (root / f"requirements/{name}.lock").write_text("# nothing\n")
    shutil.copy(ROOT / "requirements/installer.lock", root / "requirements")
    (root / "pyproject.toml").write_text(PYPROJECT)
    (root / "backend.py").write_text(BACKEND)
    return Checkout(root)


@pytest.mark.slow
def test_the_second_time_does_nothing(checkout: Checkout) -> None:
    assert ".venv is ready" in checkout.set_up()
    before = (checkout.root / ".venv/.finished.json").stat().st_mtime_ns
    assert checkout.set_up() == ""
    assert (checkout.root / ".venv/.finished.json").stat().st_mtime_ns == before
    assert checkout.builds == 1


@pytest.mark.slow
def test_a_changed_lock_is_installed_and_a_level_never_goes_back(checkout: Checkout) -> None:
    checkout.set_up("base")
    checkout.set_up("dev")
    assert checkout.stamp["level"] == "dev"
    assert checkout.set_up("base") == ""
    (checkout.root / "requirements/dev.lock").write_text("# nothing else\n")
    checkout.set_up("base")
    assert checkout.stamp["level"] == "dev"
    assert checkout.builds == 3


@pytest.mark.slow
def test_an_interrupted_set_up_is_not_believed(checkout: Checkout) -> None:
    for pipe in ("reached", "hold"):
        os.mkfifo(checkout.root / pipe)
    process = checkout.start("base")
    assert (checkout.root / "reached").read_text() == "reached"
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    for pipe in ("reached", "hold"):
        (checkout.root / pipe).unlink()
    left_over = checkout.root / ".venv/lib/half"
    left_over.touch()
    checkout.set_up()
    assert not left_over.exists()
    assert not (checkout.root / ".venv/.unfinished").exists()


@pytest.mark.slow
def test_two_at_once_set_up_once(checkout: Checkout) -> None:
    both = [checkout.start("dev") for _ in range(2)]
    outputs = [process.communicate(timeout=100) for process in both]
    assert [process.returncode for process in both] == [0, 0], outputs
    assert checkout.builds == 1


@pytest.mark.slow
def test_a_moved_checkout_is_made_anew(checkout: Checkout) -> None:
    checkout.set_up()
    moved = Checkout(checkout.root.rename(checkout.root.with_name("elsewhere")))
    moved.set_up()
    pip = subprocess.check_output([moved.root / ".venv/bin/pip", "--version"], text=True)
    assert "elsewhere" in pip


@pytest.mark.slow
def test_a_failing_step_tells_what_failed_and_leaves_no_stamp(checkout: Checkout) -> None:
    (checkout.root / "requirements/base.lock").write_text("no-such-thing==1 --hash=sha256:" + "0" * 64 + "\n")
    process = checkout.start("base")
    _, err = process.communicate(timeout=100)
    assert process.returncode == 1
    assert "installing the packages of requirements/base.lock: failed" in err
    assert "no-such-thing" in err
    assert "Traceback" not in err
    assert not (checkout.root / ".venv/.finished.json").exists()


def pretend_python(folder: Path, name: str, answer: str) -> None:
    """A command that answers our probe as an interpreter of another kind would."""
    script = folder / name
    script.write_text(f"#!/bin/sh\necho '{answer}|{script}'\n")
    script.chmod(0o755)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("3.8|venv", "needs Python 3.10 or newer and found only 3.8"),
        ("3.11|none", "has neither venv with ensurepip nor pip"),
    ],
)
@pytest.mark.parametrize("asked", ["", "python3"])
def test_an_unusable_python_gets_one_clear_line(tmp_path: Path, answer: str, said: str, asked: str) -> None:
    pretend_python(tmp_path, "python3", answer)
    shutil.copytree(ROOT / "tools", tmp_path / "tools", ignore=shutil.ignore_patterns("__pycache__"))
    env = {"PATH": str(tmp_path), "PYTHON": asked}
    done = subprocess.run([*COMMAND, "base"], cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert said in done.stderr
    assert "install Python 3.10, 3.11 or 3.12" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_no_python_at_all_gets_one_clear_line(tmp_path: Path) -> None:
    make, shell = shutil.which("make"), "/bin/sh"
    assert make
    env = {"PATH": str(tmp_path)}
    command = [make, f"SHELL={shell}", "demo"]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.splitlines()[0].startswith("no Python found: install Python 3.10")


@pytest.mark.parametrize("asked", ["no-such-python", shutil.which("false")])
def test_a_python_that_cannot_be_run_is_told_by_its_name(asked: str) -> None:
    done = subprocess.run(["make", "base", f"PYTHON={asked}"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.splitlines()[0].startswith(f"{asked}: no Python that can be run; install Python 3.10")


@pytest.mark.parametrize("name", ["bootstrap", "__init__"])
def test_an_old_python_can_parse_what_it_is_given(name: str) -> None:
    source = (ROOT / f"tools/{name}.py").read_text(encoding="utf-8")
    tree = ast.parse(source, feature_version=(3, 4))
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr | ast.NamedExpr)]
    assert "annotations" not in [
        alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names
    ]
