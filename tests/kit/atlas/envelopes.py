"""Messages of Atlas's topic, opened as Atlas's own deserializer does."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterable
from typing import Any


def opened(messages: Iterable[bytes]) -> list[Any]:
    """Return the notifications in these messages; parts have to follow each other in their order."""
    found: list[Any] = []
    parts: list[str] = []
    for message in messages:
        envelope = json.loads(message)
        assert envelope["version"] == {"version": "1.0.0", "versionParts": [1]}
        if envelope["msgSplitCount"] > 1:
            assert envelope["msgSplitIdx"] == len(parts)
            parts.append(envelope["message"])
            if len(parts) < envelope["msgSplitCount"]:
                continue
            data = base64.b64decode("".join(parts))
            envelope = json.loads(gzip.decompress(data) if envelope["msgCompressionKind"] == "GZIP" else data)
            parts = []
        elif envelope["msgCompressionKind"] == "GZIP":
            envelope = json.loads(gzip.decompress(base64.b64decode(envelope["message"])))
        found.append(envelope["message"])
    assert not parts, "the last part is missing"
    return found
