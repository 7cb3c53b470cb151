"""No module of the product imports itself by way of others, be it inside a function or for a type alone.

import-linter looks at circles nowhere, and Python raises only where one of them is imported first that isn't today.
"""

from __future__ import annotations

import ast
from collections.abc import Container, Iterator, Mapping
from pathlib import Path

from tests.kit.checkout import ROOT, SOURCE_ROOTS


def modules_below(root: Path) -> dict[str, Path]:
    """The modules of a source root, by their names."""
    found = {path.relative_to(root).with_suffix("").parts: path for path in root.rglob("*.py")}
    return {".".join(parts[:-1] if parts[-1] == "__init__" else parts): path for parts, path in found.items()}


def imports_of(text: str, known: Container[str]) -> Iterator[str]:
    """Which of the known modules a module imports, wherever in its text."""
    for node in statements(ast.parse(text).body):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                yield from (found for found in (name if name in known else node.module,) if found in known)


def statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """All statements, those inside others too."""
    for node in body:
        yield node
        for part in ("body", "orelse", "finalbody"):
            yield from statements(getattr(node, part, []))
        for part in ("handlers", "cases"):
            for each in getattr(node, part, []):
                yield from statements(each.body)


def circles_in(imports: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """The modules that reach themselves, with what each imports on a way back to itself."""
    left = {name: found - {name} for name, found in imports.items()}
    while True:  # what nobody imports, or imports nobody, is in no circle
        imported = set().union(*left.values())
        inside = {name for name, found in left.items() if found and name in imported}
        if len(inside) == len(left):
            break
        left = {name: left[name] & inside for name in inside}
    reached = {name: reached_from(name, left) for name in left}
    back = {name: {each for each in found if name in reached[each]} for name, found in left.items()}
    return {name: found for name, found in back.items() if found}


def reached_from(name: str, imports: Mapping[str, set[str]]) -> set[str]:
    found: set[str] = set()
    waiting = {name}
    while waiting:
        new = imports[waiting.pop()] - found
        found |= new
        waiting |= new
    return found


def test_no_module_imports_itself_by_way_of_others() -> None:
    modules = {name: path for root in SOURCE_ROOTS for name, path in modules_below(ROOT / root).items()}
    assert len(modules) > 300
    imports = {name: set(imports_of(path.read_text("utf-8"), modules)) for name, path in modules.items()}
    assert circles_in(imports) == {}


def test_circles_are_found_wherever_the_import_stands() -> None:
    """The check itself: in a function, for a type, of a package's own module; not a chain that ends."""
    known = {"a", "b", "c", "p", "p.m", "end"}
    texts = {
        "a": "def f():\n    try:\n        import b\n    except ImportError:\n        pass\nimport end",
        "b": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    pass\nelse:\n    from c import x",
        "c": "class C:\n    from a import y",
        "p": "from p import m",
        "p.m": "import end, os\nfrom p import something",
        "end": "",
    }
    imports = {name: set(imports_of(text, known)) for name, text in texts.items()}
    assert circles_in(imports) == {"a": {"b"}, "b": {"c"}, "c": {"a"}, "p": {"p.m"}, "p.m": {"p"}}
    assert circles_in({**imports, "c": {"end"}, "p.m": set()}) == {}
