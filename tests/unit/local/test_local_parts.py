"""The small parts: properties files, trust stores, progress, ports, who can read what, child processes."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.local import FetchError, MissingRequirementError, StartError
from headwater.local import fetch as fetching
from headwater.local.fetch import Artifact, Ivy, Maven, fetcher, ivy_jar, key_store
from headwater.local.kafka import new_cluster, properties_text
from headwater.local.mariadb import require_libraries, system_installation
from headwater.local.process import LaunchSpec, ServerProcess, exit_text, free_ports, run_tool, tail
from headwater.local.progress import announce
from headwater.local.system_user import SystemUser, first_closed_directory, make_readable, require_access

NOBODY = SystemUser("somebody", 12345, 12345)


def unescaped(line: str) -> str:
    """Read one line of a Java properties file as Java does: \\uXXXX is a UTF-16 unit."""
    value = line.partition("=")[2]
    units = bytearray()
    at = 0
    while at < len(value):
        if value[at : at + 2] == "\\u":
            units += int(value[at + 2 : at + 6], 16).to_bytes(2, "big")
            at += 6
        elif value[at] == "\\":
            units += {"n": "\n", "\\": "\\"}[value[at + 1]].encode("utf-16-be")
            at += 2
        else:
            units += value[at].encode("utf-16-be")
            at += 1
    return units.decode("utf-16-be")


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=30))
def test_any_value_survives_a_properties_file(value: str) -> None:
    text = properties_text({"key": value})
    assert text.isascii()
    assert text.count("\n") == 1
    assert unescaped(text.removesuffix("\n")) == value


@pytest.mark.slow
def test_a_java_key_store_holds_what_it_was_given(tmp_path: Path, java_home: Path) -> None:
    import ssl

    certificates = ssl.create_default_context().get_ca_certs(binary_form=True)
    assert certificates, "this machine trusts no authority at all"
    (tmp_path / "trusted.jks").write_bytes(key_store(certificates))
    keytool: list[str | Path] = [
        java_home / "bin" / "keytool",
        "-list",
        "-keystore",
        tmp_path / "trusted.jks",
        "-storepass",
        "changeit",
    ]
    done = subprocess.run(keytool, capture_output=True, text=True, check=True)
    assert f"contains {len(certificates)} entries" in done.stdout
    assert done.stdout.count("trustedCertEntry") == len(certificates)


def test_what_is_quick_is_not_announced(capsys: pytest.CaptureFixture[str]) -> None:
    with announce("something quick"):
        pass
    assert capsys.readouterr().err == ""


def test_what_takes_longer_is_announced_in_plain_lines(capsys: pytest.CaptureFixture[str]) -> None:
    said = ""
    with announce("fetching it", patience=0.0):
        while not said:
            said = capsys.readouterr().err
    assert said == "headwater: fetching it ...\n"
    assert capsys.readouterr().err == "headwater: fetching it: done in 0 s\n"


def test_what_failed_is_not_called_done(capsys: pytest.CaptureFixture[str]) -> None:
    def fetch() -> None:
        with announce("fetching it", patience=0.0):
            while not capsys.readouterr().err:
                pass
            raise FetchError("no network")

    with pytest.raises(FetchError):
        fetch()
    assert capsys.readouterr().err == "headwater: fetching it: failed after 0 s\n"


def test_free_ports_differ() -> None:
    ports = free_ports(20)
    assert len(set(ports)) == 20
    assert max(ports) < 32_768, "from there on Linux takes ports for connections"


def test_maven_is_taken_before_ivy(tmp_path: Path) -> None:
    mvn = tmp_path / "mvn"
    mvn.touch(mode=0o755)
    assert fetcher({"PATH": str(tmp_path)}) == Maven(mvn)


def test_without_maven_the_ivy_of_pyspark_is_taken() -> None:
    chosen = fetcher({"PATH": ""})
    assert isinstance(chosen, Ivy)
    assert chosen.jar.is_file()
    assert chosen.jar == ivy_jar()


def test_with_neither_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetching, "find_spec", lambda _: None)
    with pytest.raises(MissingRequirementError, match=r"neither Maven nor pyspark.*-m pip install .*\[local\]"):
        fetcher({"PATH": ""})


def test_a_failed_fetch_shows_what_the_tool_said(tmp_path: Path) -> None:
    mvn = tmp_path / "mvn"
    mvn.write_text("#!/bin/sh\necho no route to the repository\nexit 7\n")
    mvn.chmod(0o755)
    with pytest.raises(FetchError, match=r"Maven could not fetch \(exit code 7\)(.|\n)*no route"):
        Maven(mvn).fetch([Artifact("g", "a", "1")], tmp_path)


def test_a_directory_closed_to_others_is_named(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    assert first_closed_directory(closed) == closed
    with pytest.raises(MissingRequirementError, match=f"somebody, who can't enter {closed}"):
        require_access(closed, NOBODY)
    require_access(closed, None)


def test_programs_that_the_account_cannot_reach_are_linked_where_it_can(tmp_path: Path) -> None:
    tree = tmp_path / "closed" / "tree"
    (tree / "bin").mkdir(parents=True)
    (tree / "bin" / "program").write_text("x")
    (tree / "bin" / "alias").symlink_to("program")
    tree.parent.chmod(0o700)
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    copy = make_readable(tree, NOBODY, workspace)
    assert copy == workspace / "tree"
    assert (copy / "bin" / "program").read_text() == "x"
    assert (copy / "bin" / "alias").readlink() == Path("program")
    assert make_readable(tree, None, workspace) == tree


def test_a_system_mariadb_is_found_by_its_two_programs(tmp_path: Path) -> None:
    for name in ("sbin/mariadbd", "bin/mariadb-install-db"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch(mode=0o755)
    found = system_installation(f"{tmp_path}/sbin:{tmp_path}/bin")
    assert found is not None
    assert (found.base, found.server, found.system) == (tmp_path, tmp_path / "sbin" / "mariadbd", True)


def test_a_missing_shared_library_is_named(tmp_path: Path) -> None:
    server = tmp_path / "mariadbd"
    said = "error while loading shared libraries: libaio.so.1: cannot open shared object file: No such file"
    server.write_text(f"#!/bin/sh\necho '{server}: {said}' >&2\nexit 127\n")
    server.chmod(0o755)
    with pytest.raises(MissingRequirementError, match=r"lacks the shared library libaio\.so\.1.*HEADWATER_MARIADB"):
        require_libraries(server)


def test_the_environment_of_the_user_does_not_reach_a_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGDATA", "/elsewhere")
    run_tool(LaunchSpec(["/usr/bin/env"], tmp_path / "log", tmp_path, environ={"OWN": "1"}))
    said = tail(tmp_path / "log").splitlines()
    assert "OWN=1" in said
    assert "LC_ALL=C" in said
    assert not any(line.startswith("PGDATA") for line in said)


def test_a_tool_that_fails_shows_the_end_of_its_log(tmp_path: Path) -> None:
    launch = LaunchSpec(["/bin/sh", "-c", "seq 1 100; echo broken; exit 5"], tmp_path / "log", tmp_path)
    with pytest.raises(StartError, match=r"sh failed \(exit code 5\); its log:\n62\n(.|\n)*100\nbroken$"):
        run_tool(launch)


def test_a_tool_that_hangs_is_ended(tmp_path: Path) -> None:
    with pytest.raises(StartError, match="sleep didn't end within 0 s"):
        run_tool(LaunchSpec(["sleep", "60"], tmp_path / "log", tmp_path), timeout=0.1)


def test_a_program_that_ignores_its_signal_is_killed(tmp_path: Path) -> None:
    deaf = "trap '' TERM; echo ready; while :; do sleep 0.1; done"
    process = ServerProcess(
        LaunchSpec(["/bin/sh", "-c", deaf], tmp_path / "log", tmp_path), gentle=signal.SIGTERM, remove=None
    )
    while "ready" not in process.log_since_start():
        assert process.running
    process.stop(timeout=0.2)
    assert not process.running
    assert process.exit == "killed by SIGKILL"


def test_a_program_that_is_not_there_is_reported_in_the_log(tmp_path: Path) -> None:
    launch = LaunchSpec([str(tmp_path / "nothing")], tmp_path / "log", tmp_path)
    process = ServerProcess(launch, gentle=signal.SIGTERM, remove=None)
    while process.running:
        os.sched_yield()
    assert process.exit == "exit code 127"
    assert "nothing" in process.log_since_start()


def test_exit_codes_in_words() -> None:
    assert exit_text(-9) == "killed by SIGKILL"
    assert exit_text(3) == "exit code 3"


def test_no_cluster_is_named_like_a_flag() -> None:
    names = [new_cluster() for _ in range(2_000)]
    assert all(len(name) == 22 for name in names)
    assert not any(name.startswith("-") for name in names), "one in 64 would begin with a dash"
