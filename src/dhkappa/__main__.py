"""The command ``dhkappa``, also as ``python -m dhkappa``."""

import sys


def main() -> None:
    """Run the command line; Ctrl-C while modules are loading ends it without a traceback."""
    try:
        from dhkappa.cli.commands import main as run

        run()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
