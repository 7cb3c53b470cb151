"""Makes a JRE from a wheel trust the certificate authorities that this Python trusts.

Such a JRE has its own list and doesn't know authorities that the machine's owner added, such as that of a company's
proxy. Its downloads would fail although Python's succeed.
"""

from __future__ import annotations

import hashlib
import ssl
import struct
from collections.abc import Sequence
from pathlib import Path

# The Java KeyStore format, version 2, with trusted certificates only. Its password protects nothing here: it is the
# one every JRE uses for its own list, and it goes into the digest at the end.
_MAGIC = 0xFEEDFEED
_VERSION = 2
_TRUSTED_CERTIFICATE = 2
_PASSWORD = "changeit"  # noqa: S105 -- public, see above
_WHITENER = b"Mighty Aphrodite"


def trust_options(directory: Path) -> list[str]:
    """Write a trust store into `directory` and return the JVM options that name it; none if Python trusts nobody."""
    certificates = ssl.create_default_context().get_ca_certs(binary_form=True)
    if not certificates:
        return []
    store = directory / "trusted.jks"
    store.write_bytes(key_store(certificates))
    return [f"-Djavax.net.ssl.trustStore={store}", "-Djavax.net.ssl.trustStoreType=JKS"]


def key_store(certificates: Sequence[bytes]) -> bytes:
    """Return a Java KeyStore that trusts these DER certificates."""
    body = struct.pack(">III", _MAGIC, _VERSION, len(certificates))
    for number, certificate in enumerate(certificates):
        body += struct.pack(">I", _TRUSTED_CERTIFICATE) + _utf(f"ca{number}") + struct.pack(">Q", 0)
        body += _utf("X.509") + struct.pack(">I", len(certificate)) + certificate
    return body + hashlib.sha1(_PASSWORD.encode("utf-16-be") + _WHITENER + body).digest()  # noqa: S324 -- the format's


def _utf(text: str) -> bytes:
    return struct.pack(">H", len(text)) + text.encode("ascii")
