"""`headwater datasets unify OTHER… --into DATASET`."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from getpass import getuser

from headwater.cli.asking.giving import output_of
from headwater.cli.exits import Exit
from headwater.cli.flags import Flags, one_of
from headwater.cli.life.telling import add_bus, confirmed, tell
from headwater.cli.output import OUTPUTS, Output
from headwater.cli.store import opened
from headwater.errors import ConfigurationError
from headwater.events.names import DatasetId

ACTIONS = {"unify": "say that several identities are one dataset"}


def main(arguments: Sequence[str], output: Output) -> int:
    """Say what is known of datasets beyond what Spark tells."""
    parser = Flags("headwater datasets", str(main.__doc__))
    parser.action(ACTIONS, "what to do")
    parsed = parser.parse_args(arguments)
    return unify(parsed.arguments, output)


def unify(arguments: Sequence[str], output: Output) -> int:
    """Say that several identities are one dataset: two hosts of one server, two paths to one directory. Questions about
    one of them follow the others from then on; this can't be taken back."""
    from headwater.lineage.life import unify as drafted  # noqa: PLC0415

    parser = Flags("headwater datasets unify", str(unify.__doc__))
    add_bus(parser)
    parser.flag("format", one_of(OUTPUTS), None, "how results look, as --output before the command", "{text,json}")
    parser.flag("into", str, None, "what they are from now on", "DATASET")
    parser.flag("reason", str, "", "why, for those who look at it later", "TEXT")
    parser.switch("yes", "don't ask")
    parser.add_argument(
        "others", nargs="+", metavar="OTHER", help="NAMESPACE|NAME, or with --store any name of a table"
    )
    given = parser.parse_args(arguments)
    if given.into is None:
        raise ConfigurationError("into which? Name the dataset by --into")
    datasets = [_dataset(given, text) for text in (*given.others, given.into)]
    draft = drafted(datasets[:-1], datasets[-1], reason=given.reason, by=getuser())
    output = output_of(given, output)
    output.table("Datasets", ("is from now on", "was"), [(draft.dataset, other) for other in draft.others])
    if not confirmed(given, "Unify them? It can't be taken back."):
        output.note("nothing was done")
        return Exit.FAILED
    output.note(tell(given, draft))
    return Exit.DONE


def _dataset(given: Namespace, text: str) -> DatasetId:
    namespace, bar, name = text.partition("|")
    if bar:
        return DatasetId(namespace=namespace, name=name)
    if given.store is None:
        raise ConfigurationError(f"{text!r} has to be looked up: name the store by --store, or write NAMESPACE|NAME")
    from headwater.lineage.questions.names import find_dataset  # noqa: PLC0415

    with opened(given) as store, store.engine.connect() as connection:
        found = find_dataset(connection, text)
    return DatasetId(namespace=found.namespace, name=found.name)
