"""The distribution as users get it: built once per run, installed once into an environment of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit.checkout import ROOT, only, run


@pytest.fixture(scope="session")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist and the wheel built from that sdist, as `make build` makes them."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT)
    return folder


@pytest.fixture(scope="session")
def wheel(distributions: Path) -> Path:
    """The wheel."""
    return only(distributions, "*.whl")


@pytest.fixture(scope="session")
def uv() -> Path:
    """The uv of this environment."""
    return Path(sys.executable).with_name("uv")


@pytest.fixture(scope="session")
def installed(wheel: Path, uv: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of a clean environment with the wheel and the base dependencies, at their locked versions."""
    home = tmp_path_factory.mktemp("installed")
    run(sys.executable, "-m", "venv", "--without-pip", home)
    python = home / "bin" / "python"
    pins = f"--constraints={ROOT / 'requirements/dev.lock'}"
    target = [str(uv), "pip", "install", f"--python={python}", pins, str(wheel)]
    # What `make` has installed is in uv's cache: the network is asked only if it isn't.
    offline = subprocess.run([*target, "--offline"], capture_output=True, check=False)
    if offline.returncode:
        run(*target)
    return python
