"""Secrets of requests: they are in files or environment variables, and read again when a file changes.

No text that is made here holds one: errors name the file or the variable.

Signatures of requests, as Standard Webhooks has them: HMAC-SHA256 over id, time and body.

Any library for Standard Webhooks verifies them; docs/webhook.md has ten lines that do.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from headwater.errors import ConfigurationError, TerminalError
from headwater.forwarders.webhook.options import HttpOptions, checked_url

ID: Final = "webhook-id"
TIMESTAMP: Final = "webhook-timestamp"
SIGNATURE: Final = "webhook-signature"
_PREFIX: Final = "whsec_"
_SHORTEST: Final = 24


def signing_key(secret: str) -> bytes:
    """Return the key that a secret stands for: Base64 behind `whsec_`, or any other text as it is."""
    if secret.startswith(_PREFIX):
        try:
            key = base64.b64decode(secret.removeprefix(_PREFIX), validate=True)
        except binascii.Error:
            raise ValueError("what stands behind whsec_ isn't Base64") from None
    else:
        key = secret.encode()
    if len(key) < _SHORTEST:
        raise ValueError(f"{_SHORTEST} bytes are needed at least: openssl rand makes them")
    return key


def signature_headers(keys: Sequence[bytes], message_id: str, timestamp: int, body: bytes) -> dict[str, str]:
    """Return the headers that prove who sent the body: a signature for each key, so that a key can be replaced."""
    if not keys:
        return {}
    content = f"{message_id}.{timestamp}.".encode() + body
    signatures = (base64.b64encode(hmac.digest(key, content, hashlib.sha256)).decode() for key in keys)
    return {
        ID: message_id,
        TIMESTAMP: str(timestamp),
        SIGNATURE: " ".join(f"v1,{signature}" for signature in signatures),
    }


_LARGEST: Final = 64 << 10


class SecretText:
    """A text in a file or in a variable. `check` says what is wrong with it, by a ValueError."""

    def __init__(
        self,
        key: str,
        file: str | None,
        variable: str | None,
        check: Callable[[str], object],
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        """`key` is what the configuration calls it. A ConfigurationError if there is none."""
        self._path = None if file is None else Path(file)
        self._environment = environment
        self._variable = variable
        self._check = check
        self._shown = f"{key}.file {file}" if file is not None else f"{key}.variable {variable}"
        self._stamp: object = None
        self._text = ""
        try:
            self.read()
        except TerminalError as e:
            raise ConfigurationError(str(e)) from None

    def read(self) -> str:
        """Return it as it is now. A TerminalError if it can't be read, or isn't right."""
        if self._path is None:
            return self._checked(self._environment.get(str(self._variable), ""))
        try:
            about = self._path.stat()
            stamp = (about.st_mtime_ns, about.st_size, about.st_ino)
            if stamp != self._stamp:
                with self._path.open(encoding="utf-8") as file:
                    self._text = self._checked(file.read(_LARGEST))
                self._stamp = stamp
        except OSError as e:
            raise TerminalError(f"{self._shown} can't be read: {e.strerror}") from None
        except UnicodeDecodeError:
            raise TerminalError(f"{self._shown} isn't UTF-8") from None
        return self._text

    def _checked(self, text: str) -> str:
        stripped = text.strip()
        if not stripped:
            raise TerminalError(f"{self._shown} is empty or missing: put the value there")
        try:
            self._check(stripped)
        except ValueError as e:
            raise TerminalError(f"{self._shown}: {e}") from None
        return stripped


class Credentials:
    """The URL, the keys of signatures and the token of an HTTP target."""

    def __init__(self, options: HttpOptions, environment: Mapping[str, str] = os.environ) -> None:
        def secret(
            key: str, file: str | None, variable: str | None, check: Callable[[str], object]
        ) -> SecretText | None:
            return SecretText(key, file, variable, check, environment) if file or variable else None

        self._options = options
        self._url = secret("url", options.url_file, options.url_variable, checked_url)
        self._keys = secret("secret", options.secret_file, options.secret_variable, _signing_keys)
        self._token = secret("token", options.token_file, options.token_variable, _checked_token)

    def url(self) -> str:
        return str(self._options.url) if self._url is None else self._url.read()

    def keys(self) -> tuple[bytes, ...]:
        """Return the keys to sign with, none if requests aren't signed."""
        return () if self._keys is None else _signing_keys(self._keys.read())

    def headers(self) -> dict[str, str]:
        """Return the headers that every request has."""
        token = {} if self._token is None else {"authorization": f"Bearer {self._token.read()}"}
        return {**self._options.header, **token}

    @property
    def are_there(self) -> bool:
        return bool(self._keys or self._token or self._options.header)


def _signing_keys(text: str) -> tuple[bytes, ...]:
    return tuple(signing_key(line.strip()) for line in text.splitlines() if line.strip())


def _checked_token(text: str) -> None:
    if not text.isascii() or not text.isprintable() or " " in text:
        raise ValueError("only one line of printable ASCII without blanks can be a token")
