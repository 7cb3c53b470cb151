"""What a directory lies on, as far as a journal minds.

A journal needs of its file system that `flock` is seen by everybody who uses it and ends with its holder, that bytes
are readable once they are written, that a rename happens at once, and that fsync brings them to a disk. File systems of
one machine's disks give all that; others give some of it, and say so nowhere a program could ask. So what is known here
is their names. Nothing is refused for it: it may be good enough, and somebody knows who mounted it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Final

_MOUNTS: Final = Path("/proc/self/mountinfo")


class FileSystemKind(str, Enum):
    """What is behind a file system."""

    LOCAL = "local"
    MEMORY = "memory"
    NETWORK = "network"
    OBJECTS = "objects"
    """An object store that is mounted as if it were a file system."""
    USERSPACE = "userspace"
    """A program (FUSE) of which no more is known than that."""
    UNKNOWN = "unknown"


_TYPES: Final = {
    FileSystemKind.LOCAL: "apfs bcachefs btrfs exfat ext2 ext3 ext4 f2fs fuseblk fuse.fuse-overlayfs"
    " fuse.mergerfs fuse.ntfs-3g"
    " hfs hfsplus jfs nilfs2 ntfs ntfs3 overlay reiserfs ufs vfat xfs zfs",
    FileSystemKind.MEMORY: "ramfs tmpfs devtmpfs",
    FileSystemKind.NETWORK: "9p afs beegfs ceph cifs coda fuse.ceph fuse.cephfs fuse.glusterfs fuse.juicefs"
    " fuse.lizardfs"
    " fuse.moosefs fuse.mfs fuse.sshfs fuse.vmhgfs-fuse gfs2 glusterfs gpfs lustre nfs nfs4 ocfs2 orangefs panfs prl_fs"
    " pvfs2 smb2 smb3 smbfs vboxsf virtiofs wekafs",
    FileSystemKind.OBJECTS: "fuse.alluxio-fuse fuse.blobfuse fuse.blobfuse2 fuse.gcsfuse fuse.geesefs fuse.goofys"
    " fuse.mount-s3 fuse.ossfs fuse.rclone fuse.s3backer fuse.s3fs fuse.cosfs fuse.hdfs fuse_dfs fuse.fuse_dfs",
}
_KINDS: Final = {name: kind for kind, names in _TYPES.items() for name in names.split()}

_NOT_PROMISED: Final = {
    FileSystemKind.MEMORY: "it is in memory: what is in it is gone when the machine, or the container, goes"
    " down, and it takes"
    " room that programs need",
    FileSystemKind.NETWORK: "it is not promised there that two hosts don't write to one partition or read in"
    " one group's place"
    " (locks may hold on each host only, or be lost with the connection), that another host sees records soon and whole"
    " (it may look at a cached copy), nor that a record survives the death of this machine without fsync=always",
    FileSystemKind.OBJECTS: "it is not promised there that a record survives kill -9 (a file is uploaded when"
    " it is closed), that"
    " anybody else sees it before, that a rename happens at once, nor that locks are seen on other hosts",
    FileSystemKind.USERSPACE: "it is a program's own: whether locks are seen by all who use it, whether renames"
    " happen at once"
    " and fsync reaches a disk is up to that program",
}
_INSTEAD: Final = "use it from one host only, or better a directory on a local disk; for several hosts there is Kafka"


@dataclass(frozen=True, slots=True)
class FileSystem:
    """Where a path lies."""

    kind: FileSystemKind
    type: str
    """As the kernel calls it: ext4, nfs4, fuse.s3fs; nothing where it can't be known."""
    mount: str
    """The directory it is mounted at."""

    @property
    def doubts(self) -> str | None:
        """What a journal doesn't promise there, and what to do; None where it promises everything."""
        missing = _NOT_PROMISED.get(self.kind)
        if missing is None:
            return None
        advice = "use a directory on a disk" if self.kind is FileSystemKind.MEMORY else _INSTEAD
        return f"{self.mount} is of type {self.type}: {missing}; {advice}"


UNKNOWN_FILE_SYSTEM: Final = FileSystem(FileSystemKind.UNKNOWN, "", "")


def file_system_of(path: Path | str, mounts: Path = _MOUNTS) -> FileSystem:
    """The file system that a path is on, or will be once it is made; never an error. `mounts` is the kernel's list."""
    try:
        place = os.path.realpath(path)
        found = [
            each for each in _parse_mounts(mounts.read_text("utf-8", "surrogateescape")) if _holds(each.mount, place)
        ]
    except (OSError, ValueError):  # no Linux; a path with a NUL
        return UNKNOWN_FILE_SYSTEM
    # Of several at one directory the last one hides the others.
    return max(enumerate(found), key=lambda each: (len(each[1].mount), each[0]), default=(0, UNKNOWN_FILE_SYSTEM))[1]


def _parse_mounts(text: str) -> Iterator[FileSystem]:
    """One line is `id parent device root mount options [optional…] - type source options` (proc_pid_mountinfo(5))."""
    for line in text.split("\n"):  # a mount point may have any other character that ends lines elsewhere
        before, _, behind = line.partition(" - ")
        fields, name = before.split(" "), behind.partition(" ")[0]
        if len(fields) >= 6 and name:
            yield FileSystem(_kind(name), name, _unescape(fields[4]))


def _kind(name: str) -> FileSystemKind:
    return _KINDS.get(name) or (
        FileSystemKind.USERSPACE if name.split(".", maxsplit=1)[0] == "fuse" else FileSystemKind.UNKNOWN
    )


def _holds(mount: str, place: str) -> bool:
    return place == mount or place.startswith(mount.rstrip("/") + "/")


def _unescape(text: str) -> str:
    """Blanks, tabs, line ends and backslashes are written as three octal digits."""
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), text)
