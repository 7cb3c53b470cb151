"""Which home of Java a Spark gets: its own, or one that leaves out the argument that this Java refuses."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from headwater.local import JavaRuntime
from headwater.local.java_for_spark import java_home_for_spark

MODULE = "--add-modules=jdk.incubator.vector"
REFUSING = f"""\
#!/bin/sh
for argument do [ "$argument" = {MODULE} ] && exit 1; done
printf '%s\\n' "$@"
"""


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    place = tmp_path / "cache"
    place.mkdir()
    return place


def runtime(home: Path, script: str) -> JavaRuntime:
    """A Java whose launcher is this script."""
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "java").write_text(script)
    (home / "bin" / "java").chmod(0o755)
    return JavaRuntime(home, 17, "a test's")


def test_a_java_without_the_module_starts_spark_4(tmp_path: Path, cache: Path) -> None:
    found = runtime(tmp_path / "a java's home", REFUSING)

    home = java_home_for_spark(found, "4.1.1", cache)

    arguments = ["-Dfirst=a b", MODULE, "", "-cp", "*", "org.apache.spark.Main"]
    done = subprocess.run([home / "bin" / "java", *arguments], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n") == ["-Dfirst=a b", "", "-cp", "*", "org.apache.spark.Main", ""]
    assert java_home_for_spark(found, "4.1.1", cache) == home


@pytest.mark.parametrize(("spark", "script"), [("3.5.7", REFUSING), ("4.1.1", "#!/bin/sh\nexit 0\n")])
def test_any_other_java_keeps_its_home(tmp_path: Path, cache: Path, spark: str, script: str) -> None:
    """Spark 3 doesn't ask for the module, and a complete Java has it."""
    found = runtime(tmp_path / "java", script)
    assert java_home_for_spark(found, spark, cache) == found.home


def test_two_javas_have_a_home_each(tmp_path: Path, cache: Path) -> None:
    found = [runtime(tmp_path / name, REFUSING) for name in ("one", "other")]
    homes = {java_home_for_spark(each, "4.3.0", cache) for each in found}
    assert len(homes) == len(found)
