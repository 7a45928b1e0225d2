"""The command ``dhkappa``, also as ``python -m dhkappa``."""

import sys


def main() -> None:
    """Run the command line; Ctrl-C ends it without a traceback also while it loads."""
    try:
        from dhkappa.memory import hold

        hold()
        from dhkappa.cli.commands import main as run

        run()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
