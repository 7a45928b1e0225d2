"""How a command ends: with an answer, or with one sentence; never with a traceback.

Exit codes: 0 for an answer, 1 where a labeler is below ``--fail-under``, 2 for bad data or bad use, 130 for Ctrl-C.
"""

from __future__ import annotations

import contextlib
import os
import sys
from typing import Any, NoReturn

import click

from dhkappa.cli.options import in_flags, refuse_empty
from dhkappa.errors import DataError, masked, visible
from dhkappa.memory import MIB, fitting, need

BELOW = "dhkappa.below"
"""Where a command keeps the sentence on labelers below the bar."""


SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
"""Of every command."""


class Command(click.Command):
    """A command: its help is the same whether it is asked alone or within its group, and no option of it is empty."""

    def __init__(self, *args: Any, **words: Any) -> None:
        super().__init__(*args, **{"context_settings": SETTINGS} | words)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command, unless an option of it is empty."""
        refuse_empty(self, ctx.params)
        return super().invoke(ctx)


class Commands(click.Group):
    """Commands in the order that they are written."""

    command_class = Command
    group_class = type

    def __init__(self, *args: Any, **words: Any) -> None:
        super().__init__(*args, **{"context_settings": SETTINGS} | words)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the commands, the first ones to use first."""
        return list(self.commands)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command, and return its exit code, the same where whoever reads has had enough of its output."""
        try:
            need(128 * MIB, "dhkappa")  # with less, numpy ends the process
            super().invoke(ctx)
        except BrokenPipeError:
            _leave_output()
        except KeyboardInterrupt:  # before click writes an empty line
            raise _StoppedError from None
        below = ctx.meta.get(BELOW) if ctx.parent is None else None
        return 0 if below is None else say(below, 1)


class _StoppedError(Exception):
    """Ctrl-C."""


def run(commands: Commands, args: list[str] | None = None) -> NoReturn:
    """Run a command, and end the process with its exit code."""
    for number in range(3):  # or a file that is opened later would be taken for one of them
        with contextlib.suppress(OSError):
            os.fstat(number)
            continue
        os.open(os.devnull, os.O_RDWR)
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # closed by whoever started us
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    output = sys.stdout
    code: Any = 0
    try:
        with fitting("what was asked for"):
            code = commands.main(args, prog_name="dhkappa", standalone_mode=False)
        sys.stdout.flush()
    except (_StoppedError, click.Abort, KeyboardInterrupt):
        code = say("stopped.", 130)
    except click.UsageError as error:
        where = error.ctx.command_path if error.ctx else "dhkappa"
        sentence = " ".join(error.format_message().split()).rstrip(".")
        see = f" See {where} --help." if sentence.endswith(("?", "?)")) else f"; see {where} --help."
        code = say(f"{sentence[:1].lower()}{sentence[1:]}{see}", 2)
    except DataError as error:
        code = say(in_flags(str(error)), 2)
    except BrokenPipeError:
        _leave_output()
    except OSError as error:
        what = f"{error.filename!r}" if error.filename else "the output cannot be written"
        code = say(f"{what}: {error.strerror or error}.", 2)
        _leave_output()
    except SystemExit as exit:  # click has met a broken pipe while it showed help
        code = exit.code if sys.stdout is output else 0
    except Exception as error:
        if os.environ.get("DHKAPPA_TRACE"):
            raise
        code = say(
            f"this is a fault of dhkappa ({type(error).__name__}: {error}): please report it, with what it shows where "
            "DHKAPPA_TRACE=1 is in the environment.",
            2,
        )
    sys.exit(code if isinstance(code, int) else 0)


def _leave_output() -> None:
    """Have what is still to be written go nowhere, without a word."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def say(sentence: str, code: int) -> int:
    """Write a sentence to standard error, and return an exit code."""
    with contextlib.suppress(OSError):
        click.echo(f"dhkappa: {visible(masked(' '.join(sentence.split())))}", err=True)
    return code
