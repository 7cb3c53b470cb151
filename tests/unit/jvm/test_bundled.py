"""The archives of a wheel: they are for the very jars that they were compiled against, and for nothing else."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from headwater.jvm.bundled import (
    ArchiveFacts,
    BundledArchive,
    JarIdentities,
    find_bundled,
    jar_identity,
    pack,
    write_index,
)

FACTS = ArchiveFacts(missing=("Json\ta.B\tc\t-\tb.jar",))


def make_jar(path: Path, content: str) -> Path:
    with zipfile.ZipFile(path, "w") as jar:
        jar.writestr(zipfile.ZipInfo("A.class"), content)
    return path


@pytest.fixture
def jars(tmp_path: Path) -> dict[str, Path]:
    return {name: make_jar(tmp_path / f"{name}.jar", name) for name in ("spark", "other")}


@pytest.fixture
def bundled(tmp_path: Path, jars: dict[str, Path]) -> Path:
    directory = tmp_path / "bundled"
    directory.mkdir()
    (directory / "a.jar").write_bytes(pack({"A.class": b"code"}, FACTS))
    identities = tuple(sorted(map(jar_identity, jars.values())))
    write_index([BundledArchive("sources", 17, identities, "a.jar")], directory)
    return directory


def find(bundled: Path, jars: dict[str, Path], *, digest: str = "sources", java: int = 17) -> object:
    return find_bundled(digest, java, jars["spark"], JarIdentities(jars.values()), bundled)


def test_the_same_jars_fit_whatever_they_are_called(bundled: Path, jars: dict[str, Path], tmp_path: Path) -> None:
    expected = (bundled / "a.jar", FACTS)
    assert find(bundled, jars) == expected
    moved = {**jars, "other": jars["other"].rename(tmp_path / "org.other_other.jar")}
    assert find(bundled, {**moved, "more": tmp_path / "absent.jar"}) == expected
    assert find(bundled, moved, java=21) == expected


def test_nothing_else_fits(bundled: Path, jars: dict[str, Path], tmp_path: Path) -> None:
    """Other sources, an older Java, a jar that lacks, one of the same size and name, and a probe from elsewhere."""
    assert find(bundled, jars, digest="others") is None
    assert find(bundled, jars, java=11) is None
    assert find(bundled, {"spark": jars["spark"]}) is None
    (tmp_path / "patched").mkdir()
    patched = make_jar(tmp_path / "patched" / "other.jar", "rehto")
    assert patched.stat().st_size == jars["other"].stat().st_size
    assert find(bundled, {**jars, "other": patched}) is None
    shadow = make_jar(tmp_path / "shadow.jar", "shadow")
    assert find(bundled, {"spark": shadow, "real": jars["spark"], "other": jars["other"]}) is None


@pytest.mark.parametrize("index", [b"", b"[1]", b'[{"digest": "sources"}]', b"{}"], ids=repr)
def test_a_damaged_index_is_none(bundled: Path, jars: dict[str, Path], index: bytes) -> None:
    (bundled / "index.json").write_bytes(index)
    assert find(bundled, jars) is None


def test_an_archive_that_lacks_or_is_none_is_not_used(bundled: Path, jars: dict[str, Path]) -> None:
    (bundled / "a.jar").write_bytes(b"")
    assert find(bundled, jars) is None
    (bundled / "a.jar").unlink()
    assert find(bundled, jars) is None
