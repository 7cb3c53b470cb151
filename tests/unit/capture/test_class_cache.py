"""Class files on disk: what is found is what was kept, and nobody else's. Whatever is wrong, there are none."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from headwater.listeners.capture.class_cache import ClassCache, count_class_files, key_of

CLASSES = {"headwater/capture/Json.class": b"\xca\xfe", "headwater/capture/RddJobs$1.class": b"\xba\xbe"}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "classes"


@pytest.fixture
def place(root: Path) -> Path:
    ClassCache(root, "key").add(CLASSES)
    return root / "key"


def test_what_is_kept_is_found_and_others_cannot_read_it(root: Path, place: Path) -> None:
    assert ClassCache(root, "key").find() == CLASSES
    assert (root.stat().st_mode & 0o777, place.stat().st_mode & 0o777) == (0o700, 0o700)
    assert ClassCache(root, "another").find() is None
    assert [each.name for each in root.iterdir()] == ["key"]


@pytest.mark.usefixtures("place")
def test_more_is_added(root: Path) -> None:
    more = {"headwater/capture/Late.class": b"\xbe\xef"}
    ClassCache(root, "key").add(more)
    assert ClassCache(root, "key").find() == CLASSES | more


DAMAGES: dict[str, Callable[[Path], object]] = {
    "a byte": lambda place: (place / "headwater/capture/Json.class").write_bytes(b"\xca\xff"),
    "half a file": lambda place: (place / "headwater/capture/Json.class").write_bytes(b"\xca"),
    "a file": lambda place: (place / "headwater/capture/Json.class").unlink(),
    "the list": lambda place: (place / "classes.json").unlink(),
    "half the list": lambda place: (place / "classes.json").write_text('{"headwater'),
    "another list": lambda place: (place / "classes.json").write_text("[]"),
    "a directory of anybody's": lambda place: place.chmod(0o777),
    "a root of anybody's": lambda place: place.parent.chmod(0o770),
    "a link": lambda place: place.symlink_to(place.rename(place.with_name("away"))),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_what_is_not_as_it_was_written_is_not_there(root: Path, place: Path, damage: str) -> None:
    DAMAGES[damage](place)
    assert ClassCache(root, "key").find() is None


@pytest.mark.parametrize("damage", [each for each in DAMAGES if "root" not in each])
def test_and_is_written_anew(root: Path, place: Path, damage: str) -> None:
    DAMAGES[damage](place)
    ClassCache(root, "key").add(CLASSES)
    assert ClassCache(root, "key").find() == CLASSES


def test_a_directory_that_cannot_be_made_costs_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    cache = ClassCache(tmp_path / "file" / "classes", "key")
    cache.add(CLASSES)
    assert cache.find() is None


def test_eight_are_kept_that_were_used_last(root: Path) -> None:
    for number in range(10):
        ClassCache(root, f"key{number}").add(CLASSES)
        os.utime(root / f"key{number}", (number, number))
    ClassCache(root, "key2").find()
    ClassCache(root, "new").add(CLASSES)
    kept = {each.name for each in root.iterdir()}
    assert len(kept) == 8
    assert {"new", "key9", "key8", "key7", "key6", "key5"} < kept


def test_a_key_is_of_sources_java_and_jars(tmp_path: Path) -> None:
    jar = tmp_path / "a jar.jar"
    jar.write_bytes(b"1")
    sources = {"A.java": b"a", "B.java": b"b"}
    first = key_of(sources, "17", [str(jar)])
    assert first == key_of(dict(reversed(sources.items())), "17", [str(jar)])
    assert jar.as_uri().startswith("file:")
    by_url = key_of(sources, "17", [jar.as_uri()])
    others = {key_of({**sources, "A.java": b"c"}, "17", [str(jar)]), key_of(sources, "21", [str(jar)])}
    jar.write_bytes(b"22")
    others |= {key_of(sources, "17", [str(jar)]), key_of(sources, "17", [])}
    assert first not in others
    assert len(others) == 4
    assert key_of(sources, "17", [jar.as_uri()]) != by_url


def test_a_directory_that_others_can_write_is_not_counted_and_says_why(tmp_path: Path) -> None:
    """What `headwater doctor` says of it: a driver would compile at each start, in silence."""
    directory = tmp_path / "classes"
    assert count_class_files(directory) == 0
    ClassCache(directory, "key").add({"A.class": b"code"})
    assert count_class_files(directory) == 1
    directory.chmod(0o777)
    with pytest.raises(PermissionError, match="others can read or write"):
        count_class_files(directory)
