"""Every command of the command line, its help, and how a command line parses."""

from collections.abc import Iterator

import click

from dhkappa.cli.commands import commands


def leaves(group: click.Group, before: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Yield every command and group with its words."""
    yield before, group
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from leaves(command, (*before, name))
        else:
            yield (*before, name), command


ALL = list(leaves(commands))


def help_of(words: tuple[str, ...]) -> str:
    """Return the help of a command, 80 columns wide."""
    context = click.Context(commands, info_name="dhkappa", terminal_width=78, **commands.context_settings)
    for place, word in enumerate(words):
        inner = dict(ALL)[words[: place + 1]]
        context = click.Context(inner, info_name=word, parent=context, terminal_width=78)
    return dict(ALL)[words].get_help(context)


def parse(typed: list[str]) -> dict[str, object]:
    """Parse a command without running it."""
    context, command, rest = None, dict(ALL)[()], list(typed)
    while isinstance(command, click.Group):
        context = click.Context(command, parent=context)
        command = command.commands[rest.pop(0)]
    return command.make_context(command.name, rest, parent=context).params
