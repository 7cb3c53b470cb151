"""Starts the shipper: what it receives at its beginning, and the process itself.

How long a shipper outlives its driver: not at all in a container that ends with the driver.
"""

from __future__ import annotations

import dataclasses
import json
import logging
import os
import re
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO, Final, cast

from headwater.errors import TransientError
from headwater.listeners.bus.options import BusOptions
from headwater.listeners.bus.shipper.messages import Channel
from headwater.spi import Application

DEFAULT_SECONDS: Final = 60.0
_MARKERS: Final = ("/.dockerenv", "/run/.containerenv")
_VARIABLES: Final = ("KUBERNETES_SERVICE_HOST", "container")
_GENERATIONS: Final = 3
"""A container's first process is the driver, or starts it: tini, then spark-submit's JVM, then Python."""


def linger_seconds(
    configured: float | None,
    root: Path = Path("/"),
    environment: Mapping[str, str] = os.environ,
    pid: int | None = None,
) -> float:
    """What is configured, or what suits where this driver runs."""
    if configured is not None:
        return configured
    in_container = any((root / marker.lstrip("/")).exists() for marker in _MARKERS) or any(
        map(environment.get, _VARIABLES)
    )
    return 0.0 if in_container and _is_main_process(root, os.getpid() if pid is None else pid) else DEFAULT_SECONDS


def _is_main_process(root: Path, pid: int) -> bool:
    """Whether the container's first process is this one, or is there for it."""
    for _ in range(_GENERATIONS):
        if pid == 1:
            return True
        try:
            lines = (root / "proc" / str(pid) / "status").read_text().splitlines()
            pid = next(int(line.split()[1]) for line in lines if line.startswith("PPid:"))
        except (OSError, ValueError, StopIteration):
            return False
    return pid == 1


LOG_FILE: Final = "shipper.log"
"""In the spool: what native code says when it dies, and what the shipper says when its driver is gone."""
_BOOT: Final = (
    "import json, sys; orders = json.load(sys.stdin); sys.path[:] = orders['path']; "
    "from headwater.listeners.bus.shipper.main import main; main(orders, int(sys.argv[-1]))"
)
_CHECK: Final = "import json, sys; sys.path[:] = json.load(sys.stdin); import headwater.listeners.bus.shipper.main"
_IMPORT_FAILURE: Final = re.compile(
    r"(?:ModuleNotFoundError|ImportError|SyntaxError|zipimport\.ZipImportError|zlib\.error): .*"
)
_HOME: Final = tuple(dict.fromkeys(str(Path(folder).absolute().parent) for folder in sys.modules["headwater"].__path__))
"""Where the driver found headwater: a directory or a zip. Noted now, because a job may change its working directory."""


@dataclasses.dataclass(frozen=True)
class Orders:
    """What a shipper receives at its beginning."""

    configuration: Mapping[str, str] = dataclasses.field(repr=False)
    application: Application
    spool: Path
    listeners: tuple[str, ...]
    linger: float
    """How many seconds it outlives its driver, where something is left."""
    options: BusOptions

    def to_json(self) -> bytes:
        fields = {
            "path": _import_path(),
            "driver": os.getpid(),
            "configuration": dict(self.configuration),
            "application": [self.application.id, self.application.name],
            "spool": str(self.spool),
            "listeners": self.listeners,
            "linger": self.linger,
            "log_level": logging.getLogger("headwater").getEffectiveLevel(),
            "options": _numbers(self.options),
        }
        return json.dumps(fields).encode()

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> Orders:
        return cls(
            fields["configuration"],
            Application(*fields["application"]),
            Path(fields["spool"]),
            tuple(fields["listeners"]),
            fields["linger"],
            BusOptions(**fields["options"]),
        )


def start_process(orders: Orders) -> tuple[subprocess.Popen[bytes], Channel]:
    """Start a shipper. A TransientError where no process can be had.

    The configuration can hold secrets: it goes through a file without a name, not through arguments or variables. No
    descriptor of the driver's is inherited, its output above all: whoever waits for the end of that waits for the
    driver alone.
    """
    if not sys.executable:
        raise TransientError("this Python doesn't know by which command it was started (sys.executable is empty)")
    ours, theirs = socket.socketpair()
    try:
        with theirs, _unnamed_file(orders.to_json()) as given, _open_log(orders.spool) as log:
            process = subprocess.Popen(  # noqa: S603 - ourselves
                [sys.executable, "-c", _BOOT, "headwater-shipper", orders.application.id, str(theirs.fileno())],
                stdin=given,
                stdout=subprocess.DEVNULL,
                stderr=log,
                pass_fds=[theirs.fileno()],
                start_new_session=True,  # so that a Ctrl-C in the driver's terminal isn't meant for it
            )
    except (OSError, ValueError) as e:
        ours.close()
        raise TransientError(f"{sys.executable} can't be started: {e}") from e
    return process, Channel(ours)


def check_start(seconds: float) -> None:
    """Import in a new process what a shipper imports. A TransientError says why that can't be done."""
    try:
        done = subprocess.run(  # noqa: S603 - ourselves
            [sys.executable, "-c", _CHECK],
            input=json.dumps(_import_path()),
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
    except (OSError, ValueError, subprocess.TimeoutExpired) as e:
        raise TransientError(f"no process can be had for it: {e}") from e
    if done.returncode:
        raise TransientError(describe_import_failure(done.stderr) or f"its process fails: {done.stderr.strip()[-500:]}")


def describe_import_failure(log: str) -> str | None:
    """Return what to say of a process whose last words are these, if they say that an import failed."""
    *_, last = log.strip().splitlines() or [""]
    if not _IMPORT_FAILURE.fullmatch(last):
        return None
    return f"a child of {sys.executable} can't import what this process could: {last}"


def _import_path() -> list[str]:
    """The driver's path for imports, and where it found headwater: an importer of its own may have."""
    path = [os.path.abspath(place) for place in sys.path]  # noqa: PTH100 - an empty one is the working directory
    return list(dict.fromkeys([*path, *_HOME]))


def _unnamed_file(data: bytes) -> BinaryIO:
    """With this content, to be read from its beginning."""
    if hasattr(os, "memfd_create"):
        file: BinaryIO = os.fdopen(os.memfd_create("headwater-shipper"), "w+b")
    else:
        file = cast("BinaryIO", tempfile.TemporaryFile())  # noqa: SIM115 - whoever calls closes it
    file.write(data)
    file.seek(0)
    return file


def _open_log(spool: Path) -> BinaryIO:
    try:
        return (spool / LOG_FILE).open("wb")
    except OSError:  # a full disk say: it does without
        return Path(os.devnull).open("wb")


def _numbers(options: BusOptions) -> dict[str, float | None]:
    """The options that are plain numbers; the others are of the driver alone."""
    fields = {option.name: getattr(options, option.name) for option in dataclasses.fields(options)}
    return {name: value for name, value in fields.items() if value is None or type(value) in {int, float}}
