"""The scripts by which bash, zsh and fish complete `headwater`: they hold all words, so no Python runs on a Tab."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from headwater.cli.app import parser_of
from headwater.cli.commands import CommandNode, CommandPath, Group

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
    for each in parser_of(path, node).options():
        metavar = each.metavar if isinstance(each.metavar, str) else ""
        choices = tuple(metavar[1:-1].split(",")) if metavar.startswith("{") else ()
        text = (each.help or "").partition(" [")[0].replace("%%", "%")
        options.append(Option(tuple(each.option_strings), text, each.nargs != 0, choices))
    return Completions(path, {name: child.summary for name, child in children.items()}, tuple(options))


def _paths(tree: Sequence[Completions]) -> list[str]:
    return [" ".join(["headwater", *each.path]) for each in tree if each.path]


def bash(tree: Sequence[Completions]) -> str:
    """Return the script for bash."""
    values, words = [], []
    for each in tree:
        path = " ".join(["headwater", *each.path])
        plain = []
        for option in each.options:
            cases = "|".join(f'"{path} {name}"' for name in option.names)
            if option.choices:
                chosen = f'COMPREPLY=($(compgen -W "{" ".join(option.choices)}" -- "$current"))'
                values.append(f"        {cases}) {chosen}; return ;;")
            elif option.takes_value:
                plain.append(cases)
        if plain:
            values.append(f"        {'|'.join(plain)}) return ;;")  # a file, by `complete -o default`
        names = " ".join([*each.commands, *(name for option in each.options for name in option.names)])
        guard = "" if each.commands else '[[ "$current" == -* ]] && '
        words.append(f'        "{path}") {guard}COMPREPLY=($(compgen -W "{names}" -- "$current")) ;;')
    paths = "|".join(f'"{each}"' for each in _paths(tree))
    return _BASH.format(paths=paths, values="\n".join(values), words="\n".join(words))


def zsh(tree: Sequence[Completions]) -> str:
    """Return the script for zsh."""
    return _ZSH.format(bash=bash(tree).partition("\n")[2])


def fish(tree: Sequence[Completions]) -> str:
    """Return the script for fish."""
    return _FISH.format(
        paths=" ".join(f'"{each}"' for each in _paths(tree)),
        lines="\n".join(line for each in tree for line in _fish(each)),
    )


def _fish(words: Completions) -> Iterator[str]:
    at = f"-n '__headwater_at \"{' '.join(['headwater', *words.path])}\"'"
    for name, text in words.commands.items():
        yield f"complete -c headwater {at} -f -a {name} -d {_quoted(text)}"
    for option in words.options:
        names = " ".join(f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in option.names)
        value = f" -x -a '{' '.join(option.choices)}'" if option.choices else " -r" if option.takes_value else ""
        yield f"complete -c headwater {at} {names}{value} -d {_quoted(option.text)}"


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


SCRIPTS: Final[dict[str, Callable[[Sequence[Completions]], str]]] = {"bash": bash, "zsh": zsh, "fish": fish}
