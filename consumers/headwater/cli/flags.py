"""Flags of the command line: each can also be given by an environment variable, which its help names."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Collection
from typing import TypeVar

T = TypeVar("T")


class Flags(argparse.ArgumentParser):
    """A parser whose flags read HEADWATER_<NAME> where they aren't given."""

    def __init__(self, program: str, description: str, epilog: str | None = None) -> None:
        layout = argparse.RawDescriptionHelpFormatter
        super().__init__(program, description=description, epilog=epilog, allow_abbrev=False, formatter_class=layout)

    def flag(self, name: str, convert: Callable[[str], T], default: str, text: str, metavar: str | None = None) -> None:
        """Add `--name`; `convert` raises ValueError with what is wrong, for a flag and a variable alike."""
        variable = variable_of(name)

        def converted(given: str) -> T:
            try:
                return convert(given)
            except ValueError as error:
                raise argparse.ArgumentTypeError(f"{error} (given as --{name} or {variable})") from error

        value = os.environ.get(variable, default)
        shown = f"{text} [{variable}, default {default}]".replace("%", "%%")
        self.add_argument(f"--{name}", type=converted, default=value, help=shown, metavar=metavar)


def variable_of(name: str) -> str:
    """The environment variable that stands for a flag."""
    return f"HEADWATER_{name.upper().replace('-', '_')}"


def one_of(choices: Collection[str]) -> Callable[[str], str]:
    """A converter that accepts the named words only."""

    def convert(given: str) -> str:
        if given not in choices:
            raise ValueError(f"{given!r} is none of {', '.join(choices)}")
        return given

    return convert


def pair(text: str) -> tuple[str, str]:
    """`KEY=VALUE`, for a flag that takes a property."""
    key, is_pair, value = text.partition("=")
    if not is_pair or not key.strip():
        raise argparse.ArgumentTypeError(f"{text!r} isn't KEY=VALUE")
    return key.strip(), value
