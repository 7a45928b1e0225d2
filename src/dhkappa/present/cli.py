"""The command line: the library's calls and its sentences, without a traceback."""

from __future__ import annotations

import click

import dhkappa
from dhkappa.present.terminal import labeler_table, note_lines


class Wrong(click.ClickException):
    """Bad data: one sentence on stderr, and exit code 2."""

    exit_code = 2


class Commands(click.Group):
    """Commands whose errors about data read like errors of use."""

    def invoke(self, ctx: click.Context) -> object:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except dhkappa.DataError as error:
            raise Wrong(str(error)) from error


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(dhkappa.__version__, prog_name="dhkappa")
def main() -> None:
    """Can we trust these labels? Score suggested labels against annotators' votes."""


@main.command(epilog="Example: dhkappa demo --items 1000 --seed 7")
@click.option("--items", default=400, show_default=True, type=click.IntRange(1, 10_000_000), help="Items to simulate.")
@click.option("--seed", default=1, show_default=True, type=click.IntRange(0), help="Seed: the same data again.")
def demo(items: int, seed: int) -> None:
    """Simulate support tickets with two labelers, and score both.

    Five annotators vote on each ticket and skip one vote in four; a keyword rule and an LLM have suggested
    labels.
    """
    drawn = dhkappa.simulate(
        items,
        categories=["billing", "bug", "how-to", "outage", "other"],
        prevalence=[4, 3, 3, 1, 2],
        annotators=[0.95, 0.9, 0.9, 0.85, 0.7],
        labelers={"keyword rule": 0.65, "llm": 0.9},
        missing=0.25,
        rng=seed,
    )
    kappas = {name: dhkappa.dh_kappa(drawn.votes, labels) for name, labels in drawn.suggested.items()}
    click.echo(f"{items:,} simulated support tickets, 5 categories, up to 5 votes each, 2 labelers.\n")
    click.echo(labeler_table(kappas))
    click.echo(
        "\nkappa_DH  pairs of annotators who agree on the suggested label rather than on"
        "\n          another, beyond chance: 1 is perfect"
        "\nfloor     what labels dealt out at random would score with these annotators"
        "\nceiling   what the annotators' own most frequent label would score"
        "\nFleiss    how far annotators agree with each other on the same items; it never"
        "\n          sees a label, so it cannot tell one labeler from the other"
    )
    click.echo("\nNotes\n" + note_lines(kappas))
