"""The directory of one server: data, settings and log."""

from __future__ import annotations

import secrets
import shutil
import tempfile
from pathlib import Path

from headwater.local.system_user import SystemUser, change_owner, require_access

_PORTS = "ports"


class ServerWorkspace:
    """A directory that the user chose and that is kept, or a temporary one that is removed with the server."""

    def __init__(self, name: str, given: Path | None, account: SystemUser | None) -> None:
        self._account = account
        self.is_kept = given is not None
        if given is None:
            self.path = Path(tempfile.mkdtemp(prefix=f"headwater-{name}-"))
            self.path.chmod(0o711)  # the account goes through to its own directories, and can't list
        else:
            self.path = given.absolute()
            self.path.mkdir(parents=True, exist_ok=True)
        try:
            require_access(self.path, account)
        except BaseException:
            self.remove()
            raise

    @property
    def log(self) -> Path:
        """The server's log."""
        return self.path / "server.log"

    @property
    def throwaway(self) -> Path | None:
        """The directory if it goes with the server."""
        return None if self.is_kept else self.path

    def own(self, name: str) -> Path:
        """Return a directory that belongs to the account alone, made if it isn't there."""
        place = self.path / name
        if not place.exists():
            place.mkdir(mode=0o700)
            change_owner(place, self._account)
        return place

    def secret(self, name: str) -> str:
        """Return a random password that stays the same as long as the directory does."""
        place = self.path / name
        if not place.exists():
            place.touch(mode=0o600)
            place.write_text(secrets.token_urlsafe(18))
        return place.read_text()

    def ports(self, count: int) -> tuple[int, ...]:
        """Return the ports of the last start, so that addresses stay valid."""
        place = self.path / _PORTS
        recorded = place.read_text().split() if place.exists() else []
        return tuple(map(int, recorded)) if len(recorded) == count and all(map(str.isdecimal, recorded)) else ()

    def keep_ports(self, ports: tuple[int, ...]) -> None:
        """Record the ports for the next start."""
        if self.is_kept:
            (self.path / _PORTS).write_text(" ".join(map(str, ports)))

    def remove(self) -> None:
        """Remove the directory unless it is to be kept."""
        if not self.is_kept:
            shutil.rmtree(self.path, ignore_errors=True)
