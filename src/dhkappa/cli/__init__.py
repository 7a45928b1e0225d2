"""The command line. This module runs a command and turns every outcome into an exit code and at most one message.

Exit codes: 0 done or gate passed, 1 gate failed, 2 usage or data error, 3 gate undecided, 130 interrupted.
"""

from __future__ import annotations

import contextlib
import os
import sys
from typing import Any, NoReturn

import click

from dhkappa.errors import DataError, flag, masked, visible
from dhkappa.resources import limit_blas_threads, memory_errors


def run(commands: click.Group, args: list[str] | None = None) -> NoReturn:
    """Run a command and end the process with its exit code."""
    _prepare_streams()
    limit_blas_threads()
    output = sys.stdout
    code: Any = 0
    try:
        with memory_errors("this command"):
            code = commands.main(args, prog_name="dhkappa", standalone_mode=False)
        sys.stdout.flush()
    except (click.Abort, KeyboardInterrupt):
        code = fail("Interrupted.", 130)
    except click.UsageError as error:
        command = error.ctx.command_path if error.ctx else "dhkappa"
        sentence = " ".join(error.format_message().split())
        stop = "" if sentence.endswith((".", "?", "?)")) else "."
        code = fail(f"{sentence}{stop} See {command} --help.", 2)
    except DataError as error:
        code = fail(error.text(flag), 2)
    except BrokenPipeError:
        discard_output()
    except OSError as error:
        what = repr(error.filename) if error.filename else "the output"
        code = fail(f"Cannot write {what}: {error.strerror or error}.", 2)
        discard_output()
    except SystemExit as exit:  # raised by click for a broken pipe while it shows help
        code = exit.code if sys.stdout is output else 0
    except Exception as error:
        if os.environ.get("DHKAPPA_TRACE"):
            raise
        hint = "Please report it with the traceback that DHKAPPA_TRACE=1 in the environment shows."
        code = fail(f"Internal error ({type(error).__name__}: {error}). {hint}", 2)
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


def discard_output() -> None:
    """Discard what is still to be written to standard output."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def fail(message: str, code: int) -> int:
    """Write a message to standard error as one line, and return the exit code."""
    with contextlib.suppress(OSError):
        click.echo(f"dhkappa: {visible(masked(' '.join(message.split())))}", err=True)
    return code
