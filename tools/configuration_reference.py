"""Writes docs/configuration.md: every key, its default, its meaning and where it counts, taken from the code.

A key's meaning is the docstring below its field, a flag's is its help. `--check` only says whether the page is current.
"""

from __future__ import annotations

import ast
import inspect
import itertools
import pathlib
import re
import sys
from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any, Final, get_args

from headwater.cli.app import leaf_parser
from headwater.cli.commands import CommandPath, Leaf, walk
from headwater.config import Config, variable_of
from headwater.config.model import Keys
from headwater.config.units import Bytes, Seconds
from headwater.forwarders.configuration import ForwarderConfig
from headwater.lineage.listener.config import JdbcConfig
from headwater.lineage.store import StoreOptions
from headwater.listeners.settings import Settings
from headwater.publishers.console import ConsoleConfig
from headwater.publishers.kafka.config import KafkaConfig
from headwater.publishers.log import LogConfig

PAGE: Final = pathlib.Path(__file__).parent.parent / "docs/configuration.md"
_HEAD: Final = """\
# Configuration reference

<!-- Written by `python -m tools.configuration_reference` from the code. Change the docstrings there, not this page. -->

```
spark.headwater.enabled         true
spark.headwater.listeners       kafka
spark.headwater.spool.max.bytes 4 GiB
```

Sizes are written as `1048576`, `512m` or `1 GiB`, durations as `30`, `100 ms` or `1 h` (a bare number is seconds).
Lists have commas. A key that ends in `<name>` is a section: it takes any name. A key that isn't here, or a value that
is wrong, gives a message that names the nearest right one. In a driver the job goes on, with the default; a
listener whose key says where events go, or how a connection is secured, waits until it is put right, and its events
wait in the spool.

The words are in [concepts](concepts.md); variables of other flags are on the page
[command line](command-line.md#variables).
"""
_SETTINGS: Final = {
    "enabled": ("Listeners", "the driver. They are read once, when the SparkContext is made"),
    "job": (
        "Jobs",
        "the driver. `job.name` and `job.namespace` count in a session too: `SET spark.headwater.job.name = …`",
    ),
    "spool": (
        "Spool",
        "the driver, `headwater spool` and `headwater doctor`: give all the same. More on the page [spools](spools.md)",
    ),
    "capture": (
        "Capture",
        "the driver. What they change is on the pages [capture](capture.md) and [limits](limits.md)",
    ),
    "redaction": ("Secrets", "the driver. What is hidden is on the page [security](security.md)"),
    "read": (
        "Consistent reads",
        (
            "the driver; in a session too, but for the store. More on the pages "
            "[consistent reads](consistent-reads.md) and [branches](branches.md#a-snapshot-of-a-branch)"
        ),
    ),
    "metrics": ("Metrics", "the driver. What is measured is on the page [metrics](metrics.md)"),
    "lineage": ("Lineage", "the driver; the store follows the events that say it"),
    "namespaces": ("Names, tags and parents", "the driver"),
}
"""By the first word of a section's first key: its heading, and where its keys count."""
_SAME_SECTION: Final = {
    "job.listeners": "enabled",
    "listeners": "enabled",
    "catalog": "enabled",
    "tags": "namespaces",
    "validating": "job",
    "parent": "namespaces",
}
_LISTENERS: Final = (
    ("kafka", KafkaConfig, "Events to Kafka: [the page of this listener](kafka.md)."),
    ("log", LogConfig, "Events to a directory: [the page of this listener](local-log.md)."),
    (
        "jdbc",
        JdbcConfig,
        (
            "Events straight into a store: [the page of this listener](jdbc.md). It also has the options of "
            "[stores](#stores) that begin with `jdbc.`, of which `spark.headwater.jdbc.url` has to be set."
        ),
    ),
    ("console", ConsoleConfig, "One line for each event, for people who look."),
)
_STORE: Final = """
## Stores

A command that opens a store takes these options from its `--store URL` and the environment, a catalog from
`spark.sql.catalog.<catalog>.<key>`, Python from `StoreOptions`. More on the page [store](store.md).

"""
_WRITER: Final = """
## The writer

The command is `headwater writer run`. A flag goes before its variable, the variable before the key in the file that
`--config` names, and the key before the default. In the file a key is the flag's name without `--`. More on the page
[writer](writer.md).

"""
_FORWARDERS: Final = """
## Forwarders

The command is `headwater forward run`. A flag goes before its variable, the variable before the key in the file that
`--config` names, and the key before the default. More on the page [forwarders](forwarders.md).

"""
_FORWARDER: Final = """
Each `[forwarders.NAME]` of the file has these keys, and the options of its target beside them. `--option
NAME.KEY=VALUE` goes before the file.

"""
_UNITS: Final = (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10))
_TIMES: Final = (("days", 86_400), ("h", 3_600), ("min", 60))


def page() -> str:
    """Return the text of the page."""
    return _HEAD + "".join(
        (
            *_driver_sections(),
            *_listener_sections(),
            _STORE,
            _store_table(),
            *_writer_section(),
            *_forwarder_section(),
        )
    )


def _driver_sections() -> Iterator[str]:
    sections: dict[str, list[str]] = {name: [] for name in _SETTINGS}
    for key, row in _rows(Settings, "spark.headwater."):
        first = key.partition(".")[0]
        sections[_SAME_SECTION.get(key) or _SAME_SECTION.get(first, first)].append(row)
    for name, rows in sections.items():
        heading, where = _SETTINGS[name]
        yield f"\n## {heading}\n\nCount in {where}.\n\n{_table(rows)}"


def _listener_sections() -> Iterator[str]:
    yield (
        "\n## Sections of listeners\n\nCount in the driver, `headwater spool ship` and `headwater doctor`. A listener "
        "that you call otherwise (`main=kafka`) has its section under that name (`spark.headwater.main.`).\n"
    )
    for name, config, words in _LISTENERS:
        shared = {key.removeprefix("jdbc.") for key, _ in _names(StoreOptions)} if config is JdbcConfig else set[str]()
        prefix = f"spark.headwater.{name}."
        rows = [row for key, row in _rows(config, prefix) if key not in shared]
        yield f"\n### `{name}`\n\n{words}\n\n{_table(rows)}"


def _store_table() -> str:
    meanings, rows = _docstrings(StoreOptions), []
    for key, name in _names(StoreOptions):
        variable = "HEADWATER_STORE" if key == "jdbc.url" else variable_of(key, "HEADWATER_STORE_")
        rows.append(f"| `{key}` | `{variable}` | {_default(StoreOptions, name)} | {meanings[name]} |\n")
    return f"| key | variable | default | meaning |\n|---|---|---|---|\n{''.join(rows)}"


def _writer_section() -> Iterator[str]:
    yield _WRITER
    yield from _flag_table(("writer", "run"))


def _forwarder_section() -> Iterator[str]:
    yield _FORWARDERS
    yield from _flag_table(("forward", "run"), beside=("writer", "run"))
    yield _FORWARDER
    yield _table([row for _, row in _rows(ForwarderConfig, "")])


def _flag_table(path: CommandPath, beside: CommandPath | None = None) -> Iterator[str]:
    """Yield the flags of a command; those that another one has alike are only named."""
    known = set(_flags(beside)) if beside else set[tuple[str, str, str, str]]()
    yield "| flag | variable | default | meaning |\n|---|---|---|---|\n"
    for option, variable, default, text in _flags(path):
        if (option, variable, default, text) not in known:
            yield f"| `--{option}` | {_code(variable)} | {_code(default)} | {text} |\n"
    if alike := [f"`--{flag[0]}`" for flag in _flags(path) if flag in known]:
        yield f"\n{', '.join(alike)} are as above.\n"


def _flags(path: CommandPath) -> Iterator[tuple[str, str, str, str]]:
    """Yield name, variable, default and meaning of each flag of a command."""
    node = dict(walk())[path]
    assert isinstance(node, Leaf)  # noqa: S101 - a command
    parser = leaf_parser(path, node.load())
    helps = {each.option_strings[-1].removeprefix("--"): str(each.help) for each in parser.options()}
    for name, declared in parser.declared.items():
        text = helps[name].partition(" [")[0].replace("%%", "%").replace("|", "\\|").replace("<", "&lt;")
        yield name, declared.variable or "", str(parser.get_default(name.replace("-", "_")) or ""), text


def _code(text: str) -> str:
    return f"`{text}`" if text and text != "False" else ""


def _rows(config: type[Config], prefix: str) -> Iterator[tuple[str, str]]:
    """Yield each key, and its line in a table."""
    meanings, sections = _docstrings(config), Keys.of(config).sections
    for key, name in _names(config):
        shown = f"{key}.<name>" if key in sections else key
        default = "" if key in sections else _default(config, name)
        yield key, f"| `{prefix}{shown}` | {default} | {meanings[name]} |\n"


def _names(config: type[Config]) -> Iterator[tuple[str, str]]:
    """Yield each key with the name of its field."""
    config.model_rebuild()
    for name, field in config.model_fields.items():
        yield field.alias or name.replace("_", "."), name


def _docstrings(config: type[Config]) -> Mapping[str, str]:
    """Return the text below each field, in one line. A field without one is an error."""
    lines = next(each for each in ast.walk(ast.parse(inspect.getsource(config))) if isinstance(each, ast.ClassDef)).body
    found: dict[str, str] = {}
    for field, text in itertools.pairwise(lines):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(text, ast.Expr):
            words = " ".join(str(ast.literal_eval(text.value)).split()).replace("|", "\\|")
            found[field.target.id] = re.sub(r"docs/([\w-]+)\.md", r"[\1](\1.md)", words)
    missing = [f"{config.__name__}.{name}" for name in config.model_fields if name not in found]
    if missing:
        raise SystemExit(f"without a docstring: {', '.join(missing)}")
    return found


def _default(config: type[Config], name: str) -> str:
    field = config.model_fields[name]
    if field.is_required():
        return "has to be set"
    value: Any = field.default
    if field.default_factory is not None:  # of a directory: that of a user with an empty environment
        value = field.default_factory({})  # type: ignore[call-arg]
    if value is None or value == ():
        return ""
    kinds = repr([field.annotation, *field.metadata, *get_args(field.annotation)])
    if repr(get_args(Bytes)[1]) in kinds:
        return f"`{_amount(value, _UNITS, '')}`"
    if repr(get_args(Seconds)[1]) in kinds:
        return f"`{_amount(value, _TIMES, 's')}`"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return f"`{value.value if isinstance(value, Enum) else value}`"


def _amount(value: float, units: tuple[tuple[str, int], ...], base: str) -> str:
    for unit, size in units:
        if value >= size and value % size == 0:
            return f"{value / size:g} {unit}"
    return f"{value:g} {base}".strip()


def _table(rows: list[str]) -> str:
    return f"| key | default | meaning |\n|---|---|---|\n{''.join(rows)}"


def main() -> int:
    """Write the page, or with `--check` return 1 where it isn't current."""
    if "--check" in sys.argv[1:]:
        return int(PAGE.read_text("utf-8") != page())
    PAGE.write_text(page(), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
