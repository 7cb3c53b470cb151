"""Requests are signed as Standard Webhooks has it, secrets can be replaced while it runs, and TLS proves both sides."""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import Callable, Generator
from datetime import datetime, timedelta, timezone
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from headwater.errors import ConfigurationError, HeadwaterError, TerminalError
from headwater.forwarders.webhook.credentials import Credentials, signature_headers, signing_key
from headwater.forwarders.webhook.options import WebhookOptions
from tests.kit.checkout import ROOT
from tests.kit.forwarders.sending import sent
from tests.kit.forwarders.stage import commit
from tests.kit.forwarders.webhook import checked, forwarder
from tests.kit.forwarders.webhook_server import WebhookRequest, WebhookServer, webhook_server

OLD, NEW = "the old secret of the receiver", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


@pytest.fixture
def server() -> Generator[WebhookServer]:
    with webhook_server() as started:
        yield started


def test_the_example_that_standard_webhooks_gives() -> None:
    headers = signature_headers([signing_key(NEW)], "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}')
    assert headers == {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }


def documented() -> Callable[..., bool]:
    """Return the function of docs/webhook.md that verifies a request."""
    page = (ROOT / "docs/webhook.md").read_text("utf-8")
    (code,) = re.findall(r"```python verify\n(.*?)```", page, re.DOTALL)
    scope: dict[str, Any] = {}
    exec(code, scope)  # noqa: S102 - it is our own page
    verify: Callable[..., bool] = scope["is_authentic"]
    return verify


def is_authentic(request: WebhookRequest, secret: str, **more: Any) -> bool:
    return documented()(request.headers, request.body, secret, **more)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["structured", "binary", "batched"])
def test_the_documented_check_accepts_what_is_sent_and_nothing_else(
    server: WebhookServer, tmp_path: Path, mode: str
) -> None:
    (tmp_path / "secret").write_text(f"{NEW}\n{OLD}\n", "utf-8")
    assert sent(forwarder(url=server.url, mode=mode, secret_file=str(tmp_path / "secret")), [commit(1)]) == [None]
    (post,) = server.posts
    assert is_authentic(post, NEW)
    assert is_authentic(post, OLD), "while a secret is replaced, both are right"
    assert not is_authentic(post, "another secret that is long enough")
    assert not is_authentic(WebhookRequest("POST", "/", post.headers, post.body.replace(b"etl", b"ETL")), NEW)
    later = {**post.headers, "webhook-timestamp": str(int(post.headers["webhook-timestamp"]) + 1)}
    assert not is_authentic(WebhookRequest("POST", "/", later, post.body), NEW)
    assert not is_authentic(post, NEW, now=int(post.headers["webhook-timestamp"]) + 301), "an old one is played again"
    assert not is_authentic(WebhookRequest("POST", "/", {}, post.body), NEW)


@pytest.mark.slow
def test_a_message_that_comes_again_has_the_same_id(server: WebhookServer, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(OLD, "utf-8")
    target = forwarder(url=server.url, mode="batched", secret_file=str(tmp_path / "secret"))
    assert sent(target, [commit(1), commit(2)], [commit(1), commit(2)], [commit(1)]) == [None] * 3
    first, again, other = (each.headers["webhook-id"] for each in server.posts)
    assert first == again != other


@pytest.mark.slow
def test_a_secret_and_a_token_are_replaced_without_a_restart(server: WebhookServer, tmp_path: Path) -> None:
    secret, token = tmp_path / "secret", tmp_path / "token"
    secret.write_text(OLD, "utf-8")
    token.write_text("t0ken-1\n", "utf-8")
    target = forwarder(url=server.url, secret_file=str(secret), token_file=str(token))

    async def go() -> None:
        await target._target.post("1", {"content-type": "application/cloudevents+json"}, b'{"id":"1"}')
        for file, text in ((secret, NEW), (token, "t0ken-22")):
            aside = tmp_path / "aside"
            aside.write_text(text, "utf-8")
            aside.replace(file)
        await target._target.post("2", {"content-type": "application/cloudevents+json"}, b'{"id":"2"}')
        secret.write_text("", "utf-8")
        with pytest.raises(TerminalError, match=r"secret\.file .* is empty"):
            await target._target.post("3", {}, b"{}")
        await target.close()

    asyncio.run(go())
    first, second = server.posts
    assert (first.headers["authorization"], second.headers["authorization"]) == ("Bearer t0ken-1", "Bearer t0ken-22")
    assert (is_authentic(first, OLD), is_authentic(second, OLD), is_authentic(second, NEW)) == (True, False, True)


@pytest.mark.slow
def test_a_wrong_token_is_not_repeated_by_an_error(server: WebhookServer, tmp_path: Path) -> None:
    server.token = "right"
    (tmp_path / "token").write_text("wr0ng-t0ken", "utf-8")
    (error,) = sent(forwarder(url=server.url, token_file=str(tmp_path / "token")), [commit(1)])
    assert isinstance(error, TerminalError)
    assert "wr0ng" not in str(error)


@pytest.mark.parametrize(
    ("text", "words"),
    [("short", "24 bytes"), ("whsec_!!!", "Base64"), ("whsec_c2hvcnQ=", "24 bytes"), ("  \n", "is empty")],
)
def test_a_secret_that_is_none(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "secret").write_text(text, "utf-8")
    with pytest.raises(ConfigurationError, match=words) as caught:
        Credentials(WebhookOptions(url="http://a", secret_file=str(tmp_path / "secret")))
    assert text.strip() == "" or text not in str(caught.value)


def test_a_secret_in_a_variable() -> None:
    credentials = Credentials(WebhookOptions(url_variable="U", secret_variable="S"), {"U": "https://a/b", "S": OLD})
    assert credentials.url() == "https://a/b"
    assert credentials.keys() == (OLD.encode(),)
    with pytest.raises(ConfigurationError, match=r"url.variable U: write it with http://"):
        Credentials(WebhookOptions(url_variable="U"), {"U": "hunter2"})


class Authority:
    """Makes certificates that are signed by itself."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self.file = self._write(f"{name}.pem", self._certificate(self._name, self._key, is_authority=True))

    def certificate(self, name: str) -> Path:
        """Return a file with a certificate and its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        text = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        return self._write(f"{name}.pem", self._certificate(subject, key, is_authority=False) + text)

    def _certificate(self, subject: x509.Name, key: ec.EllipticCurvePrivateKey, *, is_authority: bool) -> bytes:
        now = datetime.now(timezone.utc)
        names = x509.SubjectAlternativeName([x509.DNSName("localhost"), x509.IPAddress(ip_address("127.0.0.1"))])
        builder = x509.CertificateBuilder().subject_name(subject).issuer_name(self._name).public_key(key.public_key())
        builder = builder.serial_number(x509.random_serial_number()).not_valid_before(now - timedelta(hours=1))
        builder = builder.not_valid_after(now + timedelta(hours=1)).add_extension(names, critical=False)
        builder = builder.add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
        return builder.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)

    def _write(self, name: str, text: bytes) -> Path:
        path = self._folder / name
        path.write_bytes(text)
        return path


@pytest.mark.slow
class TestTls:
    @pytest.fixture
    def authority(self, tmp_path: Path) -> Authority:
        return Authority(tmp_path, "authority")

    def serve(self, server: WebhookServer, authority: Authority, *, asks: bool = False) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(authority.certificate("server"))
        if asks:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(authority.file)
        server.serve_tls(context)

    def outcome(self, server: WebhookServer, **options: str) -> HeadwaterError | None:
        (error,) = sent(forwarder(url=server.url, **options), [commit(1)])
        return error

    def test_a_server_that_is_proved(self, server: WebhookServer, authority: Authority) -> None:
        self.serve(server, authority)
        assert self.outcome(server, ca=str(authority.file)) is None
        assert len(server.accepted) == 1

    def test_a_server_that_nobody_proves(self, server: WebhookServer, authority: Authority) -> None:
        self.serve(server, authority)
        error = self.outcome(server)
        assert isinstance(error, TerminalError)
        assert "as ca" in str(error)
        assert server.requests == [], "nothing may be sent to it"

    def test_a_server_that_asks_who_it_is(self, server: WebhookServer, authority: Authority) -> None:
        self.serve(server, authority, asks=True)
        error = self.outcome(server, ca=str(authority.file))
        assert isinstance(error, HeadwaterError)
        assert server.accepted == []
        if isinstance(error, TerminalError):  # else the connection was reset before its reason could be read
            assert "client.certificate" in str(error)
        client = authority.certificate("client")
        assert self.outcome(server, ca=str(authority.file), client_certificate=str(client)) is None

    def test_secrets_without_tls_are_warned_of(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("headwater.forwarders.webhook.http_client._LOOPBACK", frozenset())
        (tmp_path / "token").write_text("t0ken", "utf-8")
        with webhook_server() as server:
            assert ("privacy", "warning") in [
                (step, status.value)
                for step, status in checked(forwarder(url=server.url, token_file=str(tmp_path / "token")))
            ]
