"""Signatures of requests, as Standard Webhooks has them: HMAC-SHA256 over id, time and body.

Any library for Standard Webhooks verifies them; docs/webhook.md has ten lines that do.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Sequence
from typing import Final

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
        SIGNATURE: " ".join(f"v1,{each}" for each in signatures),
    }
