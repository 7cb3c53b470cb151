"""`headwater help`, `version` and `completion`: what the command line says of itself, out of its own parsers.

The scripts by which bash, zsh and fish complete `headwater`: they hold all words, so no Python runs on a Tab.
"""

from __future__ import annotations

import platform
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from headwater.cli.app import parser_of
from headwater.cli.commands import TREE, CommandNode, CommandPath, Group, command, nearest, walk
from headwater.cli.exits import Exit
from headwater.cli.flags import Flags, one_of
from headwater.cli.output import CommandOutput
from headwater.errors import ConfigurationError

_BASH: Final = """# bash completion of headwater; made by `headwater completion bash`
_headwater() {{
    local current="${{COMP_WORDS[COMP_CWORD]}}" previous="${{COMP_WORDS[COMP_CWORD-1]}}" node="headwater" at
    for ((at = 1; at < COMP_CWORD; at++)); do
        case "$node ${{COMP_WORDS[at]}}" in
            {paths}) node="$node ${{COMP_WORDS[at]}}" ;;
        esac
    done
    COMPREPLY=()
    case "$node $previous" in
{values}
    esac
    case "$node" in
{words}
    esac
}}
complete -o default -F _headwater headwater
"""
_ZSH: Final = """#compdef headwater
# zsh completion of headwater; made by `headwater completion zsh`. zsh takes completions that are written for bash.
(( ${{+functions[compdef]}} )) || {{ autoload -U +X compinit && compinit; }}
autoload -U +X bashcompinit && bashcompinit
{bash}"""
_FISH: Final = """# fish completion of headwater; made by `headwater completion fish`
function __headwater_path
    set -l path headwater
    for word in (commandline -opc)[2..-1]
        switch "$path $word"
            case {paths}
                set path "$path $word"
        end
    end
    echo $path
end
function __headwater_at
    test (__headwater_path) = "$argv[1]"
end
{lines}
"""


@dataclass(frozen=True)
class Option:
    """A flag, as a shell completes it."""

    names: tuple[str, ...]
    text: str
    takes_value: bool
    choices: tuple[str, ...]


@dataclass(frozen=True)
class Completions:
    """What can stand behind a command, as a shell completes it."""

    path: CommandPath
    commands: dict[str, str]
    options: tuple[Option, ...]


def completions_of(path: CommandPath, node: CommandNode) -> Completions:
    """Return what a shell can complete behind a group or a command, out of its parser."""
    children = node.children if isinstance(node, Group) else {}
    options = []
    for option in parser_of(path, node).options():
        metavar = option.metavar if isinstance(option.metavar, str) else ""
        choices = tuple(metavar[1:-1].split(",")) if metavar.startswith("{") else ()
        text = (option.help or "").partition(" [")[0].replace("%%", "%")
        options.append(Option(tuple(option.option_strings), text, option.nargs != 0, choices))
    return Completions(path, {name: child.summary for name, child in children.items()}, tuple(options))


def _paths(tree: Sequence[Completions]) -> list[str]:
    return [" ".join(["headwater", *node.path]) for node in tree if node.path]


def bash(tree: Sequence[Completions]) -> str:
    """Return the script for bash."""
    values, words = [], []
    for node in tree:
        path = " ".join(["headwater", *node.path])
        plain = []
        for option in node.options:
            cases = "|".join(f'"{path} {name}"' for name in option.names)
            if option.choices:
                chosen = f'COMPREPLY=($(compgen -W "{" ".join(option.choices)}" -- "$current"))'
                values.append(f"        {cases}) {chosen}; return ;;")
            elif option.takes_value:
                plain.append(cases)
        if plain:
            values.append(f"        {'|'.join(plain)}) return ;;")  # a file, by `complete -o default`
        names = " ".join([*node.commands, *(name for option in node.options for name in option.names)])
        guard = "" if node.commands else '[[ "$current" == -* ]] && '
        words.append(f'        "{path}") {guard}COMPREPLY=($(compgen -W "{names}" -- "$current")) ;;')
    paths = "|".join(f'"{each}"' for each in _paths(tree))
    return _BASH.format(paths=paths, values="\n".join(values), words="\n".join(words))


def zsh(tree: Sequence[Completions]) -> str:
    """Return the script for zsh."""
    return _ZSH.format(bash=bash(tree).partition("\n")[2])


def fish(tree: Sequence[Completions]) -> str:
    """Return the script for fish."""
    return _FISH.format(
        paths=" ".join(f'"{path}"' for path in _paths(tree)),
        lines="\n".join(line for node in tree for line in _fish(node)),
    )


def _fish(words: Completions) -> Iterator[str]:
    at = f"-n '__headwater_at \"{' '.join(['headwater', *words.path])}\"'"
    for name, text in words.commands.items():
        yield f"complete -c headwater {at} -f -a {name} -d {_quote(text)}"
    for option in words.options:
        names = " ".join(f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in option.names)
        value = f" -x -a '{' '.join(option.choices)}'" if option.choices else " -r" if option.takes_value else ""
        yield f"complete -c headwater {at} {names}{value} -d {_quote(option.text)}"


def _quote(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


SCRIPTS: Final[dict[str, Callable[[Sequence[Completions]], str]]] = {"bash": bash, "zsh": zsh, "fish": fish}


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

    script = SCRIPTS[given.shell]([completions_of(path, node) for path, node in walk()])
    output.outcome(script.rstrip(), {"shell": given.shell, "script": script})
    return Exit.DONE
