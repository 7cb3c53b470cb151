"""Takes a forwarder's own secrets out of what its target says, however the target repeats them."""

from __future__ import annotations

import base64
import re
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final
from urllib.parse import quote

from headwater.errors import HeadwaterError

_HIDDEN: Final = "…"
_LENGTH: Final = 8
"""A word that shares so many characters in a row with a secret is hidden: answers cut and wrap what they repeat."""
_WORD: Final = re.compile(r"\S+")
_SECRET_KEY: Final = re.compile(r"password|secret|token|jaas|oauthbearer|basic\.auth|key\.pem|\.pem$")


class SecretFilter:
    """Hides secrets in texts: as they are, in another case, percent-encoded, in hexadecimal digits and in base64."""

    def __init__(self, secrets: Iterable[str | None]) -> None:
        values = {spelling.casefold() for secret in secrets if secret for spelling in _spellings(secret)}
        self._short: Final = sorted((value for value in values if len(value) < _LENGTH), key=len, reverse=True)
        self._parts: Final = {part for value in values for part in _parts(value)}

    @classmethod
    def of_settings(cls, settings: Mapping[str, str]) -> SecretFilter:
        """Return the filter for those settings of a client that are secrets by their names."""
        return cls(value for key, value in settings.items() if _SECRET_KEY.search(key))

    def hide(self, text: str) -> str:
        """Return the text without the secrets."""
        found = _WORD.sub(self._hidden_word, text) if self._parts else text
        for each in self._short:
            found = re.sub(re.escape(each), _HIDDEN, found, flags=re.IGNORECASE)
        return found

    @contextmanager
    def hidden(self) -> Generator[None]:
        """Hide the secrets in errors that leave the block."""
        try:
            yield
        except HeadwaterError as e:
            e.args = tuple(self.hide(arg) if isinstance(arg, str) else arg for arg in e.args)
            raise

    def _hidden_word(self, found: re.Match[str]) -> str:
        word = found[0].casefold()
        return _HIDDEN if any(part in self._parts for part in _parts(word)) else found[0]


def _parts(text: str) -> Iterator[str]:
    return (text[at : at + _LENGTH] for at in range(len(text) - _LENGTH + 1))


def _spellings(secret: str) -> Iterator[str]:
    """Yield how a secret can be written; base64 of it looks otherwise by what stands before it."""
    data = secret.encode()
    yield secret
    yield quote(secret, safe="")
    yield data.hex()
    for before in range(3):
        encoded = base64.b64encode(bytes(before) + data).decode()[-(-before * 8 // 6) :]
        yield encoded
        yield encoded.replace("+", "-").replace("/", "_")
