"""What a directory lies on: the kernel's list, read as it says it is written, and this machine's own."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from headwater.journal.filesystem import UNKNOWN_FILE_SYSTEM, FileSystem, FileSystemKind, file_system_of

MOUNTS = r"""
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
23 22 0:21 / /proc rw,relatime - proc proc rw
30 22 0:40 / /data rw - xfs /dev/sdb rw
31 30 0:41 / /data/shared rw,relatime shared:7 master:2 - nfs4 server:/export rw,vers=4.2
32 22 0:42 / /mnt/with\040blank rw - fuse.s3fs s3fs rw,user_id=0
33 22 0:43 / /mnt/own rw - fuse.inventedfs x rw
34 22 0:44 / /home rw - ext4 /dev/sdc rw
35 34 0:45 / /home rw - cifs //server/home rw
36 22 0:46 / /fast rw - tmpfs tmpfs rw
37 22 0:47 / /odd rw - inventedfs x rw
38 22 0:48 / /next\x85line rw - nfs4 server:/next rw
torn line
"""


@pytest.fixture
def mounts(tmp_path: Path) -> Path:
    path = tmp_path / "mountinfo"
    path.write_text(MOUNTS.replace(r"\x85", "\x85"), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/var/lib/nowhere/yet", FileSystem(FileSystemKind.LOCAL, "ext4", "/")),
        ("/data", FileSystem(FileSystemKind.LOCAL, "xfs", "/data")),
        ("/database", FileSystem(FileSystemKind.LOCAL, "ext4", "/")),
        ("/data/shared/log", FileSystem(FileSystemKind.NETWORK, "nfs4", "/data/shared")),
        ("/data/shared/../own", FileSystem(FileSystemKind.LOCAL, "xfs", "/data")),
        ("/mnt/with blank/log", FileSystem(FileSystemKind.OBJECTS, "fuse.s3fs", "/mnt/with blank")),
        ("/mnt/own/log", FileSystem(FileSystemKind.USERSPACE, "fuse.inventedfs", "/mnt/own")),
        ("/home/somebody", FileSystem(FileSystemKind.NETWORK, "cifs", "/home")),
        ("/fast", FileSystem(FileSystemKind.MEMORY, "tmpfs", "/fast")),
        ("/next\x85line/log", FileSystem(FileSystemKind.NETWORK, "nfs4", "/next\x85line")),
        ("/odd/log", FileSystem(FileSystemKind.UNKNOWN, "inventedfs", "/odd")),
    ],
)
def test_the_nearest_mount_holds(mounts: Path, path: str, expected: FileSystem) -> None:
    assert file_system_of(path, mounts) == expected


def test_a_link_leads_elsewhere(mounts: Path, tmp_path: Path) -> None:
    (tmp_path / "log").symlink_to("/data/shared/log")
    assert file_system_of(tmp_path / "log", mounts).type == "nfs4"


def test_nothing_is_an_error(tmp_path: Path) -> None:
    assert file_system_of("/data", tmp_path / "no list") == UNKNOWN_FILE_SYSTEM
    assert file_system_of("/da\0ta") == UNKNOWN_FILE_SYSTEM
    assert UNKNOWN_FILE_SYSTEM.doubts is None


@pytest.mark.parametrize("path", ["/data/shared", "/mnt/with blank", "/mnt/own", "/fast"])
def test_doubts_name_the_place_and_what_to_do(mounts: Path, path: str) -> None:
    found = file_system_of(path, mounts)
    assert found.doubts is not None
    assert found.doubts.startswith(f"{path} is of type {found.type}: ")
    assert "a directory on a" in found.doubts


def test_local_ones_give_rise_to_none(mounts: Path) -> None:
    assert [file_system_of(path, mounts).doubts for path in ("/", "/data", "/odd")] == [None] * 3


@pytest.mark.skipif(not Path("/proc/self/mountinfo").exists(), reason="a list that only Linux has")
@pytest.mark.parametrize("path", [each for each in ("/", "/sys", "/proc", ".") if Path(each).exists()])
def test_this_machine(path: str) -> None:
    """The kernel's answer by another way: what stat(1) finds with statfs(2), which calls ext4 by its family's name."""
    printed = subprocess.run(
        ["stat", "-f", "-c", "%T", path], capture_output=True, text=True, check=True
    ).stdout.strip()
    names = {"ext2/ext3": "ext4", "overlayfs": "overlay"}
    assert file_system_of(path).type == names.get(printed, printed)
