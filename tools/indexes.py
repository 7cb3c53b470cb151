"""pip's own configuration, said in uv's words, so that a mirror, a proxy or a certificate is told once, to pip."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Mapping

_LINE = re.compile(r"^(?P<section>[^.]+)\.(?P<key>[\w-]+)=(?P<value>.+)$")
# As in pip: what is for `install` beats what is for all commands, and the environment beats both.
_PRECEDENCE = ("global", "install", ":env:")
# pip looks at all indexes for the best version, uv at the first that has the name; pinned hashes make either safe.
_ALL_INDEXES = {"UV_INDEX_STRATEGY": "unsafe-best-match"}


def read_settings(listing: str) -> dict[str, str]:
    """The settings in force, from the output of `pip config list`."""
    lines = [match for match in map(_LINE.match, listing.splitlines()) if match and match["section"] in _PRECEDENCE]
    lines.sort(key=lambda match: _PRECEDENCE.index(match["section"]))
    return {match["key"].replace("_", "-"): str(ast.literal_eval(match["value"])).strip() for match in lines}


def uv_environment(settings: Mapping[str, str]) -> dict[str, str]:
    """What uv is to be told in its environment for it to look where pip looks."""
    told = {
        "UV_DEFAULT_INDEX": settings.get("index-url", ""),
        "UV_INDEX": _spaced(settings, "extra-index-url"),
        "UV_FIND_LINKS": ",".join(settings.get("find-links", "").split()),
        "UV_INSECURE_HOST": _spaced(settings, "trusted-host"),
        "UV_HTTP_TIMEOUT": settings.get("default-timeout", settings.get("timeout", "")),
        "SSL_CERT_FILE": settings.get("cert", ""),
        "ALL_PROXY": settings.get("proxy", ""),
        "UV_NO_INDEX": "1" if settings.get("no-index", "").lower() in {"1", "true", "yes", "on"} else "",
    }
    if told["UV_INDEX"]:
        told |= _ALL_INDEXES
    return {name: value for name, value in told.items() if value}


def with_uv_settings(environ: Mapping[str, str], listing: str) -> dict[str, str]:
    """An environment with pip's settings added for uv; what somebody told uv itself is left as it is."""
    return {**uv_environment(read_settings(listing)), **environ}


def clean_environment() -> dict[str, str]:
    """This process's environment without what would make pip or Python install into, or read from, somewhere else."""
    astray = {
        "PIP_USER",
        "PIP_TARGET",
        "PIP_PREFIX",
        "PIP_REQUIRE_VIRTUALENV",
        "PYTHONHOME",
        "PYTHONPATH",
        "VIRTUAL_ENV",
    }
    return {name: value for name, value in os.environ.items() if name not in astray}


def _spaced(settings: Mapping[str, str], key: str) -> str:
    return " ".join(settings.get(key, "").split())
