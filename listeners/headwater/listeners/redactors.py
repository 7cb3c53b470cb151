"""The redactor of a driver: what the application calls a secret, and the key of the hashes that stand for values."""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from headwater.errors import ConfigurationError
from headwater.events.redaction import Redactor
from headwater.listeners.settings import PREFIX, Settings, spool_directory

_REGEX: Final = "spark.redaction.regex"
_KEEP: Final = f"{PREFIX}redaction.keep"
_KEY_BYTES: Final = 32
_LEAST_KEY_BYTES: Final = 16


def make_redactor(
    configuration: Mapping[str, str], hash_key: bytes | None = None
) -> tuple[Redactor, tuple[ConfigurationError, ...]]:
    """The redactor for what the application calls a secret. Where that can't be read, every option's value is one."""
    keep = configuration.get(_KEEP, "")
    try:
        return Redactor(configuration.get(_REGEX), keep=keep, hash_key=hash_key), ()
    except ConfigurationError as e:
        fault = ConfigurationError(f"{e}; until then the value of every option is hidden")
        return _HidingRedactor(hash_key=hash_key), (fault,)


class _HidingRedactor(Redactor):
    def _matches(self, key: str) -> bool:
        return True


def read_hash_key(settings: Settings) -> bytes | None:
    """The key of the hashes, which is made where there is none yet. Without a key values have no hash: one that could
    be found by trying words would give the value away."""
    path = settings.redaction_key_file or spool_directory().parent / "redaction.key"
    path = path.expanduser()
    try:
        if not path.exists() and settings.redaction_key_file is None:
            _make_key(path)
        key = path.read_bytes()
    except OSError:
        return None
    return key if len(key) >= _LEAST_KEY_BYTES else None


def _make_key(path: Path) -> None:
    """Two drivers that begin at once get one key: the file appears with its content, and only the first stays."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    try:
        with os.fdopen(os.open(new, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
            file.write(secrets.token_bytes(_KEY_BYTES))
        os.link(new, path)
    except FileExistsError:
        pass
    finally:
        new.unlink(missing_ok=True)
