"""The command line. This module runs a command and turns every outcome into an exit code and at most one message.

Exit codes: 0 done, 1 a labeler is below ``--fail-under``, 2 usage or data error, 130 interrupted.
"""

from __future__ import annotations

import contextlib
import os
import sys
from typing import Any, NoReturn

import click

from dhkappa.errors import DataError, flag, masked, visible
from dhkappa.resources import MIB, memory_errors, need

FAILED_GATE = "dhkappa.failed_gate"
"""Key of a context under which a command leaves the message of a failed gate."""


class Commands(click.Group):
    """A group that lists its commands in order of definition and shows its help if no command is given."""

    group_class = type

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands in order of definition."""
        return list(self.commands)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments; without any, show the help on standard error and exit with 2."""
        if not args and not ctx.resilient_parsing:
            click.echo(ctx.get_help(), err=True)
            ctx.exit(2)
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command and return its exit code, also if the reader of its output has stopped."""
        try:
            need(128 * MIB, "dhkappa")  # with less, numpy ends the process
            super().invoke(ctx)
        except BrokenPipeError:
            _discard_output()
        except KeyboardInterrupt:  # before click prints an empty line
            raise click.Abort from None
        failed = ctx.meta.get(FAILED_GATE) if ctx.parent is None else None
        return 0 if failed is None else _fail(failed, 1)


def run(commands: Commands, args: list[str] | None = None) -> NoReturn:
    """Run a command and end the process with its exit code."""
    _prepare_streams()
    output = sys.stdout
    code: Any = 0
    try:
        with memory_errors("this command"):
            code = commands.main(args, prog_name="dhkappa", standalone_mode=False)
        sys.stdout.flush()
    except (click.Abort, KeyboardInterrupt):
        code = _fail("Interrupted.", 130)
    except click.UsageError as error:
        command = error.ctx.command_path if error.ctx else "dhkappa"
        sentence = " ".join(error.format_message().split())
        stop = "" if sentence.endswith((".", "?", "?)")) else "."
        code = _fail(f"{sentence}{stop} See {command} --help.", 2)
    except DataError as error:
        code = _fail(error.text(flag), 2)
    except BrokenPipeError:
        _discard_output()
    except OSError as error:
        what = repr(error.filename) if error.filename else "the output"
        code = _fail(f"Cannot write {what}: {error.strerror or error}.", 2)
        _discard_output()
    except SystemExit as exit:  # raised by click for a broken pipe while it shows help
        code = exit.code if sys.stdout is output else 0
    except Exception as error:
        if os.environ.get("DHKAPPA_TRACE"):
            raise
        hint = "Please report it with the traceback that DHKAPPA_TRACE=1 in the environment shows."
        code = _fail(f"Internal error ({type(error).__name__}: {error}). {hint}", 2)
    sys.exit(code if isinstance(code, int) else 0)


def _prepare_streams() -> None:
    """Replace closed streams, and escape characters that a stream cannot encode."""
    for number in range(3):  # otherwise a file that is opened later would get the number of a standard stream
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def _discard_output() -> None:
    """Discard what is still to be written to standard output."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(message: str, code: int) -> int:
    """Write a message to standard error as one line, and return the exit code."""
    with contextlib.suppress(OSError):
        click.echo(f"dhkappa: {visible(masked(' '.join(message.split())))}", err=True)
    return code
