"""`headwater`: finds the command that is asked for, calls it, and turns errors into exit codes.

Nothing heavy is imported here.
"""

from __future__ import annotations

import os
import sys
from argparse import REMAINDER, SUPPRESS, Namespace
from collections.abc import Sequence

from headwater.cli.commands import TREE, Command, CommandNode, CommandPath, Group, Leaf, nearest
from headwater.cli.exits import MEANINGS, Exit, exit_for
from headwater.cli.flags import Flags, no_such, one_of
from headwater.cli.output import OUTPUTS, CommandOutput
from headwater.errors import HeadwaterError, TerminalError, advise_import

_LOOKS = "{{{}}}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; `arguments` are those of the process unless given. Returns the exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words[:1] == ["--version"]:
        words[0] = "version"
    node: CommandNode = TREE
    path: CommandPath = ()
    output: str | None = None
    while isinstance(node, Group):
        parser = group_parser(path, node)
        parsed = parser.parse_args(words)
        output = parsed.output or output
        if parsed.command is None and node.alone is not None:
            node, words = node.alone, []
            break
        if parsed.command is None:
            parser.print_help(sys.stderr)
            return Exit.USAGE
        if parsed.command not in node.children:
            parser.error(_no_command(parsed.command, path, node))
        path, node, words = (*path, parsed.command), node.children[parsed.command], parsed.arguments
    try:
        command = node.load()
    except ImportError as e:
        if not (advice := advise_import(e)):
            raise
        OUTPUTS.get(output or "", OUTPUTS["text"])().error(TerminalError(f"{e}: {advice}"))
        return Exit.FAILED
    return call(path, command, words, output)


def call(path: CommandPath, command: Command, arguments: Sequence[str], output: str | None) -> int:
    """Parse a command's own arguments and call it; `output` is what stood before it."""
    own, target = command.split(arguments) if command.split else (arguments, ())
    parser = leaf_parser(path, command)
    try:
        given = parser.parse_args(own)
    except HeadwaterError as error:  # what is wrong in a file of flags
        OUTPUTS.get(output or "", OUTPUTS["text"])().error(error)
        return exit_for(error)
    given.parser, given.target = parser, target
    given.output = given.output or output or "text"
    if given.output not in command.outputs:
        parser.error(no_such("output", given.output, command.outputs))
    return _run_command(command, given, OUTPUTS.get(given.output, OUTPUTS["text"])())


def _run_command(command: Command, given: Namespace, output: CommandOutput) -> int:
    """Errors that headwater didn't raise on purpose keep their traceback."""
    try:
        status = command.call(given, output)
        if not command.is_stream:
            output.finish()
        sys.stdout.flush()
    except HeadwaterError as error:
        output.finish(has_failed=True)
        output.error(error)
        return command.exit_of(error)
    except ImportError as error:  # of what an extra brings, where it is used
        if not (advice := advise_import(error)):
            raise
        output.finish(has_failed=True)
        output.error(TerminalError(f"{error}: {advice}"))
        return Exit.FAILED
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    except BrokenPipeError:
        _forget_output()
        return Exit.PIPE_CLOSED
    return status


def parser_of(path: CommandPath, node: CommandNode) -> Flags:
    """Return the parser of a group or a command."""
    return leaf_parser(path, node.load()) if isinstance(node, Leaf) else group_parser(path, node)


def group_parser(path: CommandPath, group: Group) -> Flags:
    """Return the parser of what stands before a command's last word."""
    width = max(map(len, group.children)) + 2
    lines = ["commands:", *(f"  {name:<{width}}{child.summary}" for name, child in group.children.items())]
    if not path:
        lines += ["", "exit codes:", *(f"  {code.value:<{width}}{meaning}" for code, meaning in MEANINGS.items())]
        lines += [
            "",
            "examples:",
            "  headwater demo",
            "  headwater lineage upstream sales.daily",
            "  headwater help run",
        ]
    text = f"{group.summary[:1].upper()}{group.summary[1:]}"
    parser = Flags(" ".join(["headwater", *path]), text if text.endswith(".") else f"{text}.", "\n".join(lines))
    _add_output(parser, [*OUTPUTS, "dot", "mermaid", "html", "sql"])
    if not path:
        parser.switch("version", "show the version")
    parser.usage = f"{parser.prog} [-o FORMAT] COMMAND …"
    parser.add_argument("command", nargs="?", help=SUPPRESS)
    parser.add_argument("arguments", nargs=REMAINDER, help=SUPPRESS)
    return parser


def leaf_parser(path: CommandPath, command: Command) -> Flags:
    """Return the parser of a command."""
    examples = "\n".join(["examples:", *(f"  {example}" for example in command.examples)])
    parser = command.parser(" ".join(["headwater", *path]), command.description, examples)
    for add in command.adders:
        add(parser)
    _add_output(parser, command.outputs)
    return parser


def _add_output(parser: Flags, looks: Sequence[str]) -> None:
    words = "how the answer looks: text for people, json for programs"
    parser.flag("output", one_of(looks, "output"), None, words, _LOOKS.format(",".join(looks)), short="o")


def _no_command(word: str, path: CommandPath, group: Group) -> str:
    found = [f"`headwater {' '.join(name)}`" for name in nearest(word, path, group)]
    if not found:
        return f"no command {word!r}; there are: {', '.join(group.children)}"
    return f"no command {word!r}; did you mean {' or '.join(found)}?"


def _forget_output() -> None:
    """Keep the interpreter from complaining, at its end, about an output that nobody reads any more."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
