"""A target that repeats a forwarder's token, in whatever spelling, finds it in no error, log or check.

Others test single answers; this one has a server that answers with what it was sent, to all forwarders that speak HTTP.
"""

from __future__ import annotations

import asyncio
import base64
import json
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.errors import HeadwaterError, TerminalError
from headwater.forwarders.api import BusEvent, Forwarder, ForwarderContext, RefusedEventsError
from headwater.forwarders.atlas import AtlasForwarder
from headwater.forwarders.datahub import DataHubForwarder
from headwater.forwarders.openlineage import OpenLineageForwarder
from headwater.forwarders.secret_filter import SecretFilter
from tests.kit.forwarders.stage import MemoryBus, commit

TOKEN = "plain words-and-Geheim+41/zx"  # nothing that a redaction by shapes would find
PIECES = ("geheim+41", "words-and", base64.b64encode(TOKEN.encode()).decode()[4:16], TOKEN.encode().hex()[10:30])
SPELLINGS: dict[str, Callable[[str], str]] = {
    "as it is": str,
    "shouted": str.upper,
    "percent": lambda text: quote(text, safe=""),
    "hexadecimal": lambda text: text.encode().hex(),
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "base64 of more": lambda text: base64.b64encode(f"u:{text}".encode()).decode(),
    "in JSON": lambda text: json.dumps({"message": f"no: {text}"}),
    "behind much": lambda text: "x" * 290 + text,
}
ENCODINGS = ("as it is", "percent", "hexadecimal", "base64")


@contextmanager
def echoing(status: int, spell: Callable[[str], str]) -> Generator[tuple[str, list[str]]]:
    """A server that answers everything with this status and the header that it was sent; and what it saw of that."""
    seen = list[str]()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            seen.append(self.headers.get("Authorization", ""))
            body = spell(seen[-1].removeprefix("Bearer ")).encode()
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            self.send_response(status, body.decode()[:60])
            self.send_header("Location", f"/{quote(body)}")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_HEAD = do_PUT = do_POST  # noqa: N815 - as the class has them

        def log_message(self, format: str, *args: Any) -> None: ...  # noqa: A002 - as the class has it

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", seen
        finally:
            server.shutdown()
            thread.join()


def made(kind: str, url: str, token: str | None = TOKEN) -> Forwarder:
    options = {"url": url, "request.timeout": "10"}
    if token is not None:
        options["api.key" if kind == "openlineage" else "token"] = token
    context = ForwarderContext(kind, options)
    classes: dict[str, Callable[[ForwarderContext], Any]] = {
        "openlineage": OpenLineageForwarder,
        "datahub": DataHubForwarder,
        "atlas": AtlasForwarder,
    }
    found: Forwarder = classes[kind](context)
    return found


async def words_of(forwarder: Any) -> str:
    """All that is said of an event that is sent, and of a check."""
    said = list[str]()
    try:
        event = commit(1)
        await forwarder.handle([BusEvent(event, MemoryBus().append(event))])
    except RefusedEventsError as e:
        said += [str(e), *e.reasons.values()]
    except HeadwaterError as e:
        said.append(str(e))
    try:
        said += [str(each) async for each in forwarder.check()]
    except HeadwaterError as e:
        said.append(str(e))
    await forwarder.close()
    return "\n".join(said)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["openlineage", "datahub", "atlas"])
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_token_is_never_repeated(kind: str, spelling: str) -> None:
    for status in (400, 401, 500, 302, 200):
        with echoing(status, SPELLINGS[spelling]) as (url, seen):
            said = asyncio.run(words_of(made(kind, url)))
        assert seen[0] == f"Bearer {TOKEN}"
        assert [piece for piece in PIECES if piece.lower() in said.lower()] == [], (status, said)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["openlineage", "datahub"])
def test_netrc_does_not_replace_a_token(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login somebody password else\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    with echoing(500, str) as (url, seen):
        asyncio.run(words_of(made(kind, url)))
    assert set(seen) == {f"Bearer {TOKEN}"}


@given(st.text(min_size=8, max_size=60), st.text(max_size=40), st.text(max_size=40), st.sampled_from([*ENCODINGS]))
def test_no_eight_characters_of_a_secret_stay(secret: str, before: str, after: str, spelling: str) -> None:
    """As UTF-8 can be of it; half characters can't be sent."""
    secret = secret.encode("utf-8", "ignore").decode()
    spelled = SPELLINGS[spelling](secret)
    shown = SecretFilter([secret]).hide(f"{before} {spelled} {after}").casefold()
    rest = f"{before} {after}".casefold()
    for word in spelled.casefold().split():
        for part in (word[at : at + 8] for at in range(len(word) - 7)):
            assert part not in shown or part in rest


def test_what_is_no_secret_stays() -> None:
    secrets = SecretFilter([TOKEN, "ab", None, ""])
    text = "http://atlas:21000 answers 401 (the realm of Kerberos says no)"
    assert secrets.hide(text) == text
    assert secrets.hide("AB and abc") == "… and …c"
    error = TerminalError("it says Geheim+41/zx")
    with pytest.raises(TerminalError, match=r"it says …$"), secrets.hidden():
        raise error
