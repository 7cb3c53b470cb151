"""pip's configuration as uv's variables, so that an index, a proxy or a certificate is configured once, for pip."""

from __future__ import annotations

import ast
import os
import subprocess
from pathlib import Path

VARIABLES = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "no-index": "UV_NO_INDEX",
    "trusted-host": "UV_INSECURE_HOST",
    "timeout": "UV_HTTP_TIMEOUT",
    "default-timeout": "UV_HTTP_TIMEOUT",
    "cert": "SSL_CERT_FILE",
    "proxy": "ALL_PROXY",
}
# These make pip, uv or Python install into, or import from, another place.
_MISLEADING = {
    "PIP_USER",
    "PIP_TARGET",
    "PIP_PREFIX",
    "PIP_REQUIRE_VIRTUALENV",
    "PYTHONHOME",
    "PYTHONPATH",
    "VIRTUAL_ENV",
}
_QUIET = {"PIP_ROOT_USER_ACTION": "ignore", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
# As in pip: what is for `install` beats what is for all commands, and the environment beats both.
_SECTIONS = ("global.", "install.", ":env:.")


def clean_environment() -> dict[str, str]:
    """Return this process's environment without what would mislead pip or uv."""
    return {name: value for name, value in os.environ.items() if name not in _MISLEADING} | _QUIET


def uv_environment(python: Path) -> dict[str, str]:
    """Return the environment to run uv in, with the settings of this Python's pip, if it has one.

    A variable that is set for uv itself counts more than pip's settings.
    """
    command = [str(python), "-m", "pip", "config", "list"]
    listed = subprocess.run(command, env=clean_environment(), capture_output=True, text=True, check=False)
    return {**translate(listed.stdout), **clean_environment()}


def translate(listing: str) -> dict[str, str]:
    """Return uv's variables for the output of `pip config list`."""
    settings: dict[str, str] = {}
    for section in _SECTIONS:
        for line in listing.splitlines():
            name, _, value = line.partition("=")
            variable = VARIABLES.get(name.removeprefix(section).replace("_", "-"))
            if variable and name.startswith(section):
                separator = "," if variable == "UV_FIND_LINKS" else " "
                settings[variable] = separator.join(str(ast.literal_eval(value)).split())
    # pip looks at all indexes for the best version, uv at the first that has the name; pinned hashes make either safe.
    if "UV_INDEX" in settings:
        settings["UV_INDEX_STRATEGY"] = "unsafe-best-match"
    return settings
