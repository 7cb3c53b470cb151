"""What was said between headwater and a real Atlas 2.1.0: recorded once, and replayed by a small server.

    python -m tests.kit.atlas.exchange

starts the real one and records anew, which takes some minutes. Read what changed before it is committed.
"""

from __future__ import annotations

import json
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

from headwater.forwarders.api import ForwarderContext
from headwater.forwarders.atlas import AtlasForwarder

FILE: Final = Path(__file__).parents[2] / "golden" / "forwarders" / "atlas_exchange.json"
Step = dict[str, Any]


class Replay(ThreadingHTTPServer):
    """Answers as Atlas did, as long as it is asked what Atlas was asked."""

    def __init__(self, steps: list[Step]) -> None:
        super().__init__(("127.0.0.1", 0), _Replaying)
        self.left = list(steps)
        self.difference: tuple[Step, Step] | None = None
        """What was expected, and what was asked instead, the first time."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def answer(self, asked: Step) -> Step:
        expected = self.left.pop(0) if self.left else {}
        if {key: expected.get(key) for key in asked} != asked and self.difference is None:
            self.difference = expected, asked
        return {"status": 400, "answer": "not what was recorded"} if self.difference else expected


class Recorder(ThreadingHTTPServer):
    """Passes everything on to a real server, and notes it."""

    def __init__(self, upstream: str) -> None:
        super().__init__(("127.0.0.1", 0), _Replaying)
        self.upstream = upstream
        self.steps: list[Step] = []
        self.login = ""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def answer(self, asked: Step) -> Step:
        data = None if asked["body"] is None else json.dumps(asked["body"]).encode()
        headers = {"Authorization": self.login, "Content-Type": "application/json"}
        request = urllib.request.Request(  # noqa: S310 - http, to loopback
            self.upstream + asked["path"], data=data, headers=headers, method=asked["method"]
        )
        try:
            with urllib.request.urlopen(request, timeout=120) as response:  # noqa: S310 - as above
                step = {**asked, "status": response.status, "answer": json.loads(response.read() or b"{}")}
        except urllib.error.HTTPError as e:
            with e:
                step = {**asked, "status": e.code, "answer": json.loads(e.read())}
        self.steps.append(step)
        return step


class _Replaying(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # head and body in one packet, else each answer takes 40 ms
    server: Replay | Recorder

    def _handle(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        asked = {"method": self.command, "path": self.path, "body": json.loads(body) if body else None}
        if isinstance(self.server, Recorder):
            self.server.login = self.headers["Authorization"]
        step = self.server.answer(asked)
        answer = json.dumps(step["answer"]).encode()
        self.send_response(step["status"])
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    do_GET = do_POST = do_PUT = do_DELETE = _handle  # noqa: N815 - names that the library looks for

    def log_message(self, *_: object) -> None: ...


@contextmanager
def served(server: Replay | Recorder) -> Iterator[None]:
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def forwarder(url: str, **options: str) -> AtlasForwarder:
    told = {
        "url": url,
        "user": "admin",
        "password": "admin",
        **{key.replace("_", "."): text for key, text in options.items()},
    }
    return AtlasForwarder(ForwarderContext("atlas", told))


def main() -> None:
    from tests.kit.atlas.server import AtlasServer
    from tests.kit.atlas.story import STORY
    from tests.kit.forwarders.sending import error_of

    with AtlasServer() as atlas:
        atlas.register_models()
        recorder = Recorder(atlas.address)
        with served(recorder):
            error = error_of(forwarder(recorder.url), STORY)
    if error is not None:
        raise error
    lines = ",\n".join(json.dumps(step, ensure_ascii=False) for step in recorder.steps)
    FILE.write_text(f"[\n{lines}\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
