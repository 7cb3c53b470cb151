"""Formats that are distributions of their own, installed for a test."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from headwater.listeners.capture.command_registry import all_commands
from headwater.listeners.capture.formats import GROUP, installed

PAGE = Path(__file__).parents[3] / "docs/new-format.md"


def page_code(language: str) -> str:
    """The code of the page for authors of formats."""
    (found,) = re.findall(rf"```{language}\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    return str(found)


def write_acme(place: Path, python: str | None = None, java: Mapping[str, str] | None = None) -> None:
    """The distribution of the page, with this code instead of its own."""
    module = place / "acme_format"
    (module / "java").mkdir(parents=True)
    (module / "__init__.py").write_text(page_code("python") if python is None else python)
    for name, text in ({"AcmeExtractor.java": page_code("java")} if java is None else java).items():
        (module / "java" / name).write_text(text)
    info = place / "acme_format-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-format\nVersion: 1.0\n")
    (line,) = re.findall(r"^acme = .*$", page_code("toml"), re.MULTILINE)
    (info / "entry_points.txt").write_text(f"[{GROUP}]\n{line.replace(chr(34), '')}\n")


@contextmanager
def on_path(place: Path) -> Iterator[None]:
    """Installed as long as it lasts."""
    sys.path.insert(0, str(place))
    _forget()
    try:
        yield
    finally:
        sys.path.remove(str(place))
        _forget()


def _forget() -> None:
    importlib.invalidate_caches()
    sys.modules.pop("acme_format", None)
    installed.cache_clear()
    all_commands.cache_clear()
