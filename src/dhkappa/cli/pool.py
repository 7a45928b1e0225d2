"""The command ``dhkappa pool``: shares of the categories in a whole pool, and its wrong labels."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import click

import dhkappa
from dhkappa.cli import options
from dhkappa.cli.filters import left_out, say_left_out
from dhkappa.cli.options import Command, Input, option
from dhkappa.cli.output import json_text, listed, naming_audit, open_errors, refuse, warn
from dhkappa.errors import one_labeler
from dhkappa.resources import Progress

_POOL = "File with the labels of all items, or the number of items with each label, such as billing=500,bug=300."
_COLUMN = "Column of labels in the file of --pool; by default the one called as that of FILE."
_FINITE = "Limits for the items of this pool alone: closer if a good part of it was sampled."
_STRATA = "The column of suggested labels, if items were drawn for each label separately."


@click.command(
    cls=Command,
    epilog="\b\nExamples: dhkappa pool votes.csv -s llm --pool labels.parquet\n"
    "          dhkappa pool votes.csv -s llm --pool billing=500,bug=300",
)
@option("pool", _POOL, required=True, metavar="FILE|LABEL=N")
@option("pool-column", _COLUMN, metavar="COLUMN")
@option("strata", _STRATA, metavar="COLUMN")
@option("finite-pool", _FINITE, is_flag=True)
@option("categories", "All categories, in order, separated by commas.", multiple=True, metavar="LABEL")
@options.combine(options.FILES, options.REPORT_FORMAT, options.ROLES_OF_ONE, options.LEVEL, options.ALLOW)
def pool(**given: Any) -> None:
    """Estimate the shares of categories and the wrong labels in a whole pool.

    FILE has votes on a random sample of the items; all items of the pool have a suggested label. Prints which share of
    the pool annotators would give each category, and how many suggested labels are wrong.
    """
    source = Input(given | {"pool": ()})
    with Progress(None, "counting votes"):
        data = source.data
        if isinstance(data, dhkappa.Dataset):
            data.check_single()
            data.check_labeled()
        labeler = one_labeler(next(iter(source.suggested or ()), None), data.labelers)
        problems = naming_audit(source.problems())
        if errors := [one for one in open_errors(problems) if one.concerns(labeler)]:
            refuse(errors[0])
        names = ("pool", "pool_column", "finite_pool", "confidence_level")
        found = dhkappa.pool_shares(data, labeler, **{name: given[name] for name in names})
    if given["output_format"] == "json":
        click.echo(json_text("pool", {**listed(problems), **found.to_dict(), **left_out(data)}))
    elif given["output_format"] == "markdown":
        click.echo(import_module("dhkappa.report.markdown").pool_page(found, problems), nl=False)
    else:
        say_left_out(data)
        warn(problems)
        import_module("dhkappa.report.terminal").Terminal().pool(found)
