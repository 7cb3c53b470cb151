"""Whether drivers find headwater: the line in site-packages that brings it in, and the versions beside it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from headwater.listeners.capture.formats import installed
from headwater.listeners.spark_versions import untested
from headwater.plugins import own_version
from headwater.spi import CheckResult

_PATIENCE: Final = 20.0
_VERSION: Final = re.compile(r"__version__[^=]*=\s*[\"'](\d+)\.(\d+)([^\"']*)")
_ASK: Final = "import sys; sys.exit('headwater.listeners.hook' not in sys.modules)"
_INSTALL: Final = "install headwater into the Python that drivers run"


def check_installation(conf: Mapping[str, str]) -> Iterator[CheckResult]:
    place = f"for {sys.executable} ({sys.version.split()[0]})"
    yield CheckResult.ok("headwater", f"{own_version() or 'of a version that is not known'}, {place}")
    yield _hook()
    yield _pyspark()
    yield from _formats()
    yield from _other_python(conf)


def _hook() -> CheckResult:
    """Asked of an interpreter that starts as a driver does."""
    try:
        done = subprocess.run([sys.executable, "-c", _ASK], timeout=_PATIENCE, check=False, capture_output=True)  # noqa: S603 - ourselves
    except (OSError, subprocess.TimeoutExpired) as e:
        return CheckResult.error("hook", f"{sys.executable} can't be started: {e}", "see to this Python")
    if done.returncode == 0:
        return CheckResult.ok("hook", "drivers of this Python find headwater at their start (headwater.pth)")
    words = (
        "this Python doesn't bring headwater in at its start: headwater.pth isn't in its site-packages, or -S or "
        "-I keeps it from reading such files"
    )
    advice = f"{_INSTALL}: {sys.executable} -m pip install headwater"
    if any(".zip" in each for each in _places()):
        words = "headwater is imported from a zip, so drivers don't find it by their configuration alone"
        return CheckResult.warning("hook", words, f"call headwater.listeners.install(spark) in the job; or {advice}")
    return CheckResult.error("hook", words, advice)


def _formats() -> Iterator[CheckResult]:
    found = installed()
    yield CheckResult.ok("formats", f"asked in this order: {', '.join(each.name for each in found.plugins)}")
    for each in found.broken:
        words = f"{each.name} is left out: {each.why}"
        yield CheckResult.error("formats", words, "put it right, or uninstall what brings it: all others are at work")


def _places() -> list[str]:
    """Return where headwater is imported from."""
    return list(sys.modules["headwater"].__path__)


def _pyspark() -> CheckResult:
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        words = "there is no pyspark in this Python, so no driver runs in it as it is"
        return CheckResult.warning("pyspark", words, "run the doctor with the Python and the PYTHONPATH of a driver")
    found = _VERSION.search(Path(spec.origin).with_name("version.py").read_text("utf-8"))
    if found is None:
        return CheckResult.warning("pyspark", f"the version of {spec.origin} can't be read")
    words = f"{found[1]}.{found[2]}{found[3]}"
    if (said := untested(words)) is None:
        return CheckResult.ok("pyspark", words)
    advice = "it works as far as what it reads is still there, and what isn't is a Gap; or use one of those"
    return CheckResult.warning("pyspark", said, advice)


def _other_python(conf: Mapping[str, str]) -> Iterator[CheckResult]:
    """Spark lets users say which Python a driver runs; that has to be this one."""
    said = {
        "spark.pyspark.driver.python": conf.get("spark.pyspark.driver.python"),
        "PYSPARK_DRIVER_PYTHON": os.environ.get("PYSPARK_DRIVER_PYTHON"),
        "spark.pyspark.python": conf.get("spark.pyspark.python"),
        "PYSPARK_PYTHON": os.environ.get("PYSPARK_PYTHON"),
    }
    key, python = next(((key, each) for key, each in said.items() if each), ("", None))
    if python is None or python in {"jupyter", "ipython"}:
        return
    found = shutil.which(python)
    if found is None:
        yield CheckResult.warning("python", f"{key} is {python}, which isn't there on this machine", _INSTALL)
    elif Path(found).absolute() != Path(sys.executable).absolute():
        words = f"drivers are run by {found} ({key}), and the doctor by {sys.executable}"
        yield CheckResult.warning("python", words, f"ask that one: {found} -m headwater.cli doctor")
