"""pip's configuration reaches uv: whoever has a mirror, a certificate or a proxy tells it once, to pip."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tools import indexes

INDEX = "https://mirror.example/simple"


def reported(*lines: str) -> dict[str, str]:
    return indexes.translate("\n".join(lines))


@pytest.mark.parametrize(
    ("line", "name", "value"),
    [
        (f"global.index-url='{INDEX}'", "UV_DEFAULT_INDEX", INDEX),
        (f"install.index-url='{INDEX}'", "UV_DEFAULT_INDEX", INDEX),
        (f":env:.index-url='{INDEX}'", "UV_DEFAULT_INDEX", INDEX),
        (
            "global.extra-index-url='\\nhttps://a.example\\nhttps://b.example'",
            "UV_INDEX",
            "https://a.example https://b.example",
        ),
        ("global.find-links='/opt/one /opt/two'", "UV_FIND_LINKS", "/opt/one,/opt/two"),
        ("global.trusted-host='mirror.example'", "UV_INSECURE_HOST", "mirror.example"),
        ("global.cert='/etc/ca.pem'", "SSL_CERT_FILE", "/etc/ca.pem"),
        ("global.proxy='http://proxy.example:3128'", "ALL_PROXY", "http://proxy.example:3128"),
        ("global.timeout='60'", "UV_HTTP_TIMEOUT", "60"),
        (":env:.no-index='1'", "UV_NO_INDEX", "1"),
    ],
)
def test_each_setting_has_its_word_in_uv(line: str, name: str, value: str) -> None:
    assert reported(line)[name] == value


def test_the_environment_beats_install_beats_global() -> None:
    lines = [":env:.index-url='e'", "install.index-url='i'", "global.index-url='g'"]
    assert reported(*lines) == {"UV_DEFAULT_INDEX": "e"}
    assert reported(*lines[1:]) == {"UV_DEFAULT_INDEX": "i"}


def test_several_indexes_are_searched_as_pip_searches_them() -> None:
    assert reported("global.extra-index-url='https://a.example'")["UV_INDEX_STRATEGY"] == "unsafe-best-match"
    assert "UV_INDEX_STRATEGY" not in reported(f"global.index-url='{INDEX}'")


def test_other_commands_settings_are_left_alone() -> None:
    assert reported("freeze.index-url='x'", "", "nonsense") == {}


@pytest.mark.slow
def test_each_pip_is_asked_and_what_uv_was_reported_itself_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "PIP_INDEX_URL": INDEX,
        "PIP_PROXY": "http://proxy.example",
        "PIP_TARGET": "/elsewhere",
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("UV_DEFAULT_INDEX", "mine")
    env = indexes.uv_environment(Path(sys.executable))
    assert (env["UV_DEFAULT_INDEX"], env["ALL_PROXY"]) == ("mine", "http://proxy.example")
    assert "PIP_TARGET" not in env
