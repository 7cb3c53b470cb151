"""`headwater help`, `version` and `completion`: what the command line says of itself, out of its own parsers."""

from __future__ import annotations

import platform
from argparse import Namespace

from headwater.cli.app import parser_of
from headwater.cli.commands import TREE, CommandNode, Group, command, nearest, walk
from headwater.cli.exits import Exit
from headwater.cli.flags import Flags, one_of
from headwater.cli.output import CommandOutput
from headwater.errors import ConfigurationError

SHELLS = ("bash", "zsh", "fish")


def _words(parser: Flags) -> None:
    parser.word("words", str, "the command, such as lineage upstream", "COMMAND", "*")


@command(
    "Show the help of a command, as --help behind it does.",
    "headwater help",
    "headwater help lineage upstream",
    flags=[_words],
)
def show_help(given: Namespace, output: CommandOutput) -> int:
    node: CommandNode = TREE
    for at, word in enumerate(given.words):
        if not isinstance(node, Group) or word not in node.children:
            group = node if isinstance(node, Group) else TREE
            found = nearest(word, tuple(given.words[:at]) if group is node else (), group)
            near = f": did you mean `headwater help {' '.join(found[0])}`?" if found else ""
            raise ConfigurationError(f"there is no command `headwater {' '.join(given.words)}`{near}")
        node = node.children[word]
    text = parser_of(tuple(given.words), node).format_help()
    output.outcome(text.rstrip(), {"command": " ".join(["headwater", *given.words]), "help": text})
    return Exit.DONE


@command(
    "Show the version of headwater and of the Python that runs it.", "headwater version", "headwater version -o json"
)
def show_version(given: Namespace, output: CommandOutput) -> int:  # noqa: ARG001 - there is nothing to say
    # Takes longer to import than everything else here.
    from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415

    try:
        ours = version("headwater")
    except PackageNotFoundError:  # in a zip that holds the package alone
        ours = "unknown"
    found = {"headwater": ours, "python": platform.python_version()}
    output.outcome(f"headwater {found['headwater']}", found)
    return Exit.DONE


def _shell(parser: Flags) -> None:
    parser.word("shell", one_of(SHELLS, "shell"), "which shell", "{bash,zsh,fish}")


@command(
    """Print a script by which your shell completes commands and flags.

bash: add `source <(headwater completion bash)` to ~/.bashrc
zsh:  add `source <(headwater completion zsh)` to ~/.zshrc
fish: headwater completion fish > ~/.config/fish/completions/headwater.fish""",
    "headwater completion bash",
    "headwater completion zsh",
    "headwater completion fish",
    flags=[_shell],
)
def completion(given: Namespace, output: CommandOutput) -> int:
    from headwater.cli.completion import SCRIPTS, completions_of  # noqa: PLC0415 - for this command only

    script = SCRIPTS[given.shell]([completions_of(path, node) for path, node in walk()])
    output.outcome(script.rstrip(), {"shell": given.shell, "script": script})
    return Exit.DONE
