"""A Java that a Spark starts on.

Spark 4 starts Java with `--add-modules=jdk.incubator.vector`. Java then refuses to start where that module isn't there,
and the Java that comes as a wheel is without it. Spark itself does without: it uses the module for some linear algebra
if it is there. So such a Java gets a home of its own beside it, whose `bin/java` leaves that one argument out.
"""

from __future__ import annotations

import hashlib
import shlex
import subprocess
from pathlib import Path
from typing import Final

from headwater.local.cache import cached_directory
from headwater.local.java import JavaRuntime

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
