"""Archives on disk: what is found is what was kept, and nobody else's. Whatever is wrong, there are none."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from headwater.jvm.bundled import ArchiveFacts, pack
from headwater.jvm.cache import ArchiveCache, key_of, state_of

FACTS = ArchiveFacts(
    left_out={"Broken": "no such class"}, missing=("Json\ta.B\tc\t-\tb.jar",), absent=("X\ta.C\td\t?",)
)
CONTENT = pack({"headwater/capture/Json.class": b"\xca\xfe" * 99, "headwater/capture/RddJobs$1.class": b"\xba"}, FACTS)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "classes"


@pytest.fixture
def place(root: Path) -> Path:
    ArchiveCache(root).add("key", CONTENT)
    return root / "key.jar"


def test_what_is_kept_is_found_and_others_cannot_read_it(root: Path, place: Path) -> None:
    assert ArchiveCache(root).find("key") == (place, FACTS)
    assert place.read_bytes() == CONTENT
    assert (root.stat().st_mode & 0o777, place.stat().st_mode & 0o777) == (0o700, 0o600)
    assert ArchiveCache(root).find("another") is None
    assert list(root.iterdir()) == [place]


def test_archives_of_the_same_content_are_the_same_bytes() -> None:
    assert pack({"b": b"2", "a": b"1"}, FACTS) == pack({"a": b"1", "b": b"2"}, FACTS)


def change(place: Path, old: bytes, new: bytes) -> None:
    content = place.read_bytes()
    assert old in content
    place.write_bytes(content.replace(old, new))


DAMAGES: dict[str, Callable[[Path], object]] = {
    "a byte": lambda place: change(place, CONTENT[200:204], bytes(each ^ 1 for each in CONTENT[200:204])),
    "half a file": lambda place: place.write_bytes(CONTENT[: len(CONTENT) // 2]),
    "a file": lambda place: place.unlink(),
    "nothing in it": lambda place: place.write_bytes(b""),
    "another jar": lambda place: change(place, b"archive.json", b"another.json"),
    "a file of anybody's": lambda place: place.chmod(0o666),
    "a directory": lambda place: place.rename(place.parent / "away").with_name(place.name).mkdir(0o700),
    "a root of anybody's": lambda place: place.parent.chmod(0o770),
    "a link": lambda place: place.symlink_to(place.rename(place.with_name("away"))),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_what_is_not_as_it_was_written_is_not_there(root: Path, place: Path, damage: str) -> None:
    DAMAGES[damage](place)
    assert ArchiveCache(root).find("key") is None


@pytest.mark.parametrize("damage", [each for each in DAMAGES if each not in ("a root of anybody's", "a directory")])
def test_and_is_written_anew(root: Path, place: Path, damage: str) -> None:
    DAMAGES[damage](place)
    ArchiveCache(root).add("key", CONTENT)
    assert ArchiveCache(root).find("key") == (place, FACTS)


def test_a_directory_that_cannot_be_made_costs_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    cache = ArchiveCache(tmp_path / "file" / "classes")
    cache.add("key", CONTENT)
    assert cache.find("key") is None


def test_so_many_are_kept_that_were_used_last(root: Path) -> None:
    cache = ArchiveCache(root)
    for number in range(70):
        cache.add(f"key{number}", CONTENT)
        os.utime(root / f"key{number}.jar", (number, number))
    oldest = min((each.stem for each in root.iterdir()), key=lambda stem: int(stem.removeprefix("key")))
    assert cache.find(oldest) is not None
    cache.add("new", CONTENT)
    kept = {each.stem for each in root.iterdir()}
    assert len(kept) == 64
    assert {"new", oldest, "key69", "key68"} < kept
    assert f"key{int(oldest.removeprefix('key')) + 1}" not in kept


def test_a_key_is_of_sources_java_and_jars(tmp_path: Path) -> None:
    jar = tmp_path / "a jar.jar"
    jar.write_bytes(b"1")
    state = state_of([str(jar)])
    first = key_of("sources", "17", state)
    assert first == key_of("sources", "17", state_of([str(jar)]))
    assert jar.as_uri().startswith("file:")
    by_url = state_of([jar.as_uri()])
    others = {key_of("others", "17", state), key_of("sources", "21", state)}
    jar.write_bytes(b"22")
    others |= {key_of("sources", "17", state_of([str(jar)])), key_of("sources", "17", state_of([]))}
    assert first not in others
    assert len(others) == 4
    assert state_of([jar.as_uri()]) != by_url


def test_a_directory_that_others_can_write_is_not_counted_and_says_why(tmp_path: Path) -> None:
    """What `headwater doctor` says of it: a driver would compile at each start, in silence."""
    cache = ArchiveCache(tmp_path / "classes")
    assert cache.count() == 0
    cache.add("key", CONTENT)
    assert cache.count() == 1
    cache.root.chmod(0o777)
    with pytest.raises(PermissionError, match="others can read or write"):
        cache.count()
