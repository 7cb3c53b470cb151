"""The user under which a database server runs: PostgreSQL refuses root, and MariaDB should not be root."""

from __future__ import annotations

import os
import pwd
import shutil
import stat
from dataclasses import dataclass
from pathlib import Path

from headwater.local.errors import MissingRequirementError

_CANDIDATES = ("nobody", "postgres", "mysql")


@dataclass(frozen=True)
class SystemUser:
    """An unprivileged user of this machine."""

    name: str
    uid: int
    gid: int


def find_unprivileged_user() -> SystemUser | None:
    """Return whom to become before a server starts; None when we aren't root and stay who we are."""
    if os.geteuid() != 0:
        return None
    for name in _CANDIDATES:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return SystemUser(name, entry.pw_uid, entry.pw_gid)
    raise MissingRequirementError(
        f"database servers don't run as root and this machine has none of the users {', '.join(_CANDIDATES)}: "
        "create one of them, or run as another user"
    )


def change_owner(path: Path, account: SystemUser | None) -> None:
    """Make `path` the account's own; nothing to do when we stay who we are."""
    if account is not None:
        os.chown(path, account.uid, account.gid)


def first_closed_directory(path: Path) -> Path | None:
    """Return the nearest directory at or above `path` that other users can't enter, or None."""
    for directory in (path, *path.parents):
        if not directory.stat().st_mode & stat.S_IXOTH:
            return directory
    return None


def require_access(path: Path, account: SystemUser | None) -> None:
    """Raise a clear error when the account can't get to `path`."""
    closed = None if account is None else first_closed_directory(path)
    if account is not None and closed is not None:
        raise MissingRequirementError(
            f"the server runs as {account.name}, who can't enter {closed}: "
            "set TMPDIR, or the directory asked for, to one that all users may enter"
        )


def make_readable(tree: Path, account: SystemUser | None, workspace: Path) -> Path:
    """Return `tree` where the account can read it: in place, else as hard links or copies in `workspace`."""
    if account is None or first_closed_directory(tree) is None:
        return tree
    copy = workspace / tree.name
    if not copy.exists():
        shutil.copytree(tree, copy, copy_function=_link_or_copy, symlinks=True)
        copy.chmod(0o755)
    return copy


def _link_or_copy(source: str, target: str) -> str:
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError:
        shutil.copy2(source, target)
    return target
