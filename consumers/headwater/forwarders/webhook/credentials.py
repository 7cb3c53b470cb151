"""Secrets of requests: they are in files or environment variables, and read again when a file changes.

No text that is made here holds one: errors name the file or the variable.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from headwater.errors import ConfigurationError, TerminalError
from headwater.forwarders.webhook.options import HttpOptions, checked_url
from headwater.forwarders.webhook.signatures import signing_key

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
