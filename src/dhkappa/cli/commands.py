"""The commands: one for each function of the library, and the exit code of a gate (1 fail, 3 undecided, 2 error)."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

import dhkappa
from dhkappa.cli import options, run
from dhkappa.cli.annotators import annotators
from dhkappa.cli.files import check_output
from dhkappa.cli.filters import left_out, say_left_out
from dhkappa.cli.history import SAVING, check_saving, history, save_audit, with_baseline
from dhkappa.cli.options import EXIT, Commands, Input, option
from dhkappa.cli.output import (
    check_items,
    command_line,
    command_line_typed,
    file_name,
    json_text,
    listed,
    masked_argument,
    naming_audit,
    only,
    open_errors,
)
from dhkappa.cli.pool import pool
from dhkappa.cli.review import review
from dhkappa.cli.tally import tally
from dhkappa.errors import DataError, Problem, counted, flag, invalid, one_labeler, visible
from dhkappa.paths import expand_patterns
from dhkappa.resources import Progress

if TYPE_CHECKING:
    from dhkappa.report.terminal import Terminal
    from dhkappa.stats.gate import Gate
    from dhkappa.stats.result import Kappa

_ASSURANCE = "Probability that the half-width of the interval is at most HALF_WIDTH."
_MULTILABEL = (
    "Separator of several labels in a cell, such as ';', or json. Each category is audited as a yes/no question."
)

_OTHER_ANNOTATORS = "Give intervals and p-values also for other annotators like these, not only for other items."
_BY = "Compare slices of the items: a column such as language, or created:week (day, week or month) for dates."
_ANNOTATORS_TABLE = "File with one row per annotator; --by names its columns, such as team, or all of them are used."


def main(args: list[str] | None = None) -> None:
    """Run the command line and end the process with its exit code."""
    run(commands, args)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(dhkappa.__version__, prog_name="dhkappa")
def commands() -> None:
    """Measure whether suggested labels can be trusted, from annotators' votes.

    FILE is a CSV, TSV, JSON, JSONL, Parquet or Excel file, an export of Label Studio, Prodigy, doccano or Argilla, a
    database (postgresql://...) or a tally. The columns suggested, suggested_*, ann_*, annotator_*, item, label,
    annotator and count are recognized; name others with options.

    \b
    Examples: dhkappa demo
              dhkappa check votes.csv
              dhkappa audit votes.csv -o report.html
              dhkappa audit annotations.csv --items items.csv --fail-under 0.6
    """  # noqa: D301


@commands.command(epilog="Example: dhkappa check annotations.csv --items items.csv")
@option("multilabel", _MULTILABEL, metavar="SEPARATOR")
@options.combine(options.FILES, options.FORMAT, options.ROLES, options.SAMPLE, options.WEIGHTS, options.ALLOW)
def check(**given: Any) -> None:
    """Check the data before an audit.

    Says what was understood: the format, the role of each column, and the numbers of items, votes and categories. Then
    lists problems that can make a result wrong, with what to do, and the command to run next, with the options that fix
    them. Exits with 2 if a problem is an error.
    """
    from dhkappa.cli.fixes import next_step

    with Progress(None, "counting votes"):
        found = Input(given).check()
        step = next_step(click.get_current_context(), found)
    if given["output_format"] == "json":
        click.echo(json_text("check", found.to_dict() | {"next": step.command}))
    else:
        _terminal().check(found, step.command, step.heading, step.remark)
    if found.has_errors:
        click.get_current_context().exit(2)


@commands.command(epilog="Example: dhkappa audit annotations.csv --items items.csv -o report.html")
@option("output", "HTML report to write.", "-o", metavar="FILE")
@option("title", "Title of the report; the file name by default.", metavar="TEXT")
@option("multilabel", _MULTILABEL, metavar="SEPARATOR")
@option("by", _BY, "slices", metavar="COLUMN", multiple=True)
@option("annotators-table", _ANNOTATORS_TABLE, metavar="FILE")
@option("category", "With --multilabel: audit this category only.", metavar="LABEL")
@options.combine(options.ANALYSIS, options.ANY_TIME, options.REPORT_FORMAT, options.WEIGHTS, options.SEED, SAVING)
def audit(output: str | None, title: str | None, category: str | None, **given: Any) -> None:
    """Run all analyses; -o writes a report.

    Can the labels be trusted? Which labeler is best? Which categories and items are wrong? How does
    the labeler compare with the annotators?
    """
    files, source = given["files"], Input(given)
    check_output(output, [*files, given["items"], given["annotators_table"]], (".html", ".htm"))
    options.check_multilabel(given["multilabel"], category, output)
    saves = any(given[name] is not None for name in ("save", "date", "baseline"))
    if saves:
        check_saving(given)
    if output is not None:
        from dhkappa.report.html import check_requirements

        check_requirements()
    more = f" and {len(files) - 3} more" if len(files) > 3 else ""
    title = masked_argument(title) if title else f"Label audit: {', '.join(map(file_name, files[:3]))}{more}"
    with Progress(None, "counting votes") as progress:
        sample = {name: given[name] for name in ("weights", "confidence_level", "any_time")} | {"rng": given["seed"]}
        sample["allow"] = source.allow
        found = dhkappa.audit(source.data, source.suggested, pool=source.pool, progress=False, **sample)
        if isinstance(found, dhkappa.MultilabelAudit) and category is not None:
            found = found.audits[next((one for one in found.categories if str(one) == category), category)]
            title = f"{title}: is it {category!r}?"
        found = with_baseline(found, given) if saves else found
        labeled = isinstance(found, dhkappa.Audit)
        gate = _gate(found.kappas, given, found.problems, found.estimate_without_flagged) if labeled else None
        if labeled and output is not None:
            progress.describe("writing the report")
            found.to_html(output, title=title, command=command_line_typed(), gate=gate)
    if saves:
        save_audit(found, given)
    _show_audit(found, title, gate, given | {"data": source.data}, output)
    _say_pooled(files, given["items"], source.data)


def _say_pooled(files: Sequence[str], items: str | None, data: Any) -> None:
    """Say that several files are one data set, for those who expected a comparison of files; not votes and items."""
    number, table = len(expand_patterns(files)), getattr(data, "table", None)
    apart = items is None and table is not None and table.items is not None
    if number > 1 and not apart:
        what = f"{counted(number, 'file')} are pooled as one data set"
        click.echo(f"{what}; to compare weeks, save each with dhkappa audit --save and run dhkappa history.", err=True)


def _show_audit(found: Any, title: str, gate: Gate | None, given: Mapping[str, Any], output: str | None) -> None:
    """Show an audit of any kind."""
    if not isinstance(found, dhkappa.Audit):
        _show_other(found, title, given, output)
        return
    if given["output_format"] == "json":
        click.echo(json_text("audit", found.to_dict() | {"report": output, **left_out(given["data"])}, gate))
        return
    if given["output_format"] == "markdown":
        click.echo(found.to_markdown(title=title, gate=gate))
        return
    _terminal().audit(found, title, gate, _review_command(found, given))
    if output is not None:
        click.echo(f"\nReport: {visible(output)}")


def _review_command(found: dhkappa.Audit, given: Mapping[str, Any]) -> str:
    """Return the command that writes the review queue of the first labeler; empty if it cannot read the data."""
    if given["multilabel"] is not None:
        return ""
    context, known = click.get_current_context(), {param.name for param in review.params}
    kept = {name: value if name in known else None for name, value in context.params.items()}
    if len(found.labelers) > 1:
        best = found.ranking[0]
        quotes = best.replace('"', '""')
        kept["suggested"] = (f'"{quotes}"' if "," in best or '"' in best else best,)
    return command_line("review", context, kept | {"output": "review.csv"})


def _fail_unless_labeled(found: Any, given: Mapping[str, Any], output: str | None) -> None:
    """Set the exit code 2 if a report or a gate needs suggested labels, or items with several votes."""
    why = "no item has two votes" if isinstance(found, dhkappa.SingleVoteAudit) else "there are no suggested labels"
    gated = given["fail_under"] is not None or given["min_coverage"] is not None
    asked = {"No report was written": output is not None, "The gate was not tested": gated}
    if failed := [f"{text}: {why}." for text, needed in asked.items() if needed]:
        click.get_current_context().meta[EXIT] = " ".join(failed), 2


def _show_other(found: Any, title: str, given: Mapping[str, Any], output: str | None) -> None:
    """Show an audit of sets of labels, of annotators alone, or of one vote per item."""
    if isinstance(found, dhkappa.MultilabelAudit):
        _show_multilabel(found, title, given)
        return
    _fail_unless_labeled(found, given, output)
    if given["output_format"] == "json":
        click.echo(json_text("audit", found.to_dict() | {**left_out(given["data"])}))
    elif given["output_format"] == "markdown":
        click.echo(found.to_markdown(title=title))
    else:
        _terminal().other_audit(found, title)


def _show_multilabel(found: dhkappa.MultilabelAudit, title: str, given: Mapping[str, Any]) -> None:
    """Print the table of categories, and test ``--fail-under`` for each of them."""
    single = len(found.labelers) == 1
    rows = {
        name: {str(category) if single else f"{name}, {category}": kappa for category, kappa in own.items()}
        for name, own in found.kappas.items()
    }
    problems = [
        replace(one, labelers=tuple(row for name in one.labelers for row in rows[name])) for one in found.problems
    ]
    audits = {row: (name, place) for name, own in rows.items() for place, row in enumerate(own)}

    def without(row: str) -> Any:
        name, place = audits[row]
        return found.audits[found.categories[place]].estimate_without_flagged(name)

    gate = _gate({row: kappa for own in rows.values() for row, kappa in own.items()}, given, problems, without)
    if given["output_format"] == "json":
        click.echo(json_text("audit", found.to_dict() | {"report": None, **left_out(given["data"])}, gate))
    elif given["output_format"] == "markdown":
        click.echo(found.to_markdown(title=title, gate=gate))
    else:
        _terminal().multilabel(found, title)
        _show_passed(gate)


@commands.command(epilog="Example: dhkappa score votes.csv --suggested llm --annotators 'ann_*'")
@options.combine(options.ANALYSIS, options.ANY_TIME, options.FORMAT, options.WEIGHTS)
def score(**given: Any) -> None:
    """Compute kappa of each labeler.

    Also prints the confidence interval and the baselines: the scores of random labels and of majority labels.
    """
    source = Input(given)
    with Progress(None, "counting votes"):
        kappas = {
            name: replace(kappa, any_time=given["any_time"])
            for name, kappa in _kappas(source, given["weights"]).items()
        }
        problems = naming_audit(source.problems())
    gate = _gate(kappas, given, problems, source.estimate_without_flagged)
    level = given["confidence_level"]
    if given["output_format"] == "json":
        labelers = {name: kappa.to_dict(level) for name, kappa in kappas.items()}
        level_of = {"confidence_level": level, "any_time": given["any_time"]}
        whole = {**level_of, **listed(problems), "labelers": labelers, **left_out(source.data)}
        click.echo(json_text("score", whole, gate))
    else:
        _terminal().scores(kappas, level, problems)
        _show_passed(gate)
    _say_pooled(given["files"], given["items"], source.data)


def _kappas(source: Input, weights: str | None, any_time: bool = False) -> dict[str, Kappa]:
    """Return the kappa of each labeler; intervals hold at every look with ``any_time``."""
    if isinstance(source.data, dhkappa.Dataset):
        source.data.check_labeled()
    known = source.data.labelers
    names: list[str | None] = [one_labeler(name, known) for name in source.suggested or known] or [None]
    sample = {"pool": source.pool, "weights": weights}
    kappas = {name or "labeler": dhkappa.dh_kappa(source.data, name, **sample) for name in names}
    return {name: replace(kappa, any_time=any_time) for name, kappa in kappas.items()}


@commands.command(epilog="Example: dhkappa compare votes.csv --suggested rule,llm")
@option("other-annotators", _OTHER_ANNOTATORS, is_flag=True)
@options.combine(options.ANALYSIS, options.ANY_TIME, options.FORMAT, options.WEIGHTS, options.SEED)
def compare(**given: Any) -> None:
    """Compare labelers in pairs, on the same items."""
    source, known = Input(given), ("weights", "confidence_level", "any_time", "other_annotators")
    if given["other_annotators"] and given["fail_under"] is not None:
        message = "A gate is for these annotators: other_annotators cannot be combined with fail_under."
        raise invalid("other_annotators", message, code="option-not-supported", hint="Leave out $other_annotators.")
    with Progress(None, "counting votes"):
        sample = {name: given[name] for name in known} | {"rng": given["seed"]}
        found = dhkappa.compare(source.data, source.suggested, pool=source.pool, **sample)
        problems = naming_audit(source.problems())
    gate = _gate(found.kappas, given, problems, source.estimate_without_flagged)
    if given["output_format"] == "json":
        click.echo(json_text("compare", found.to_dict() | listed(problems) | left_out(source.data), gate))
    else:
        _terminal().comparison(found, problems)
        _show_passed(gate)
    _say_pooled(given["files"], given["items"], source.data)


commands.add_command(review)
commands.add_command(history)
commands.add_command(annotators)
commands.add_command(pool)


@commands.command(
    epilog="\b\nExamples: dhkappa plan 0.03 pilot.csv --suggested llm\n"
    "          dhkappa plan 0.05 --n-categories 5\n"
    "            --annotator-accuracy 0.9 --labeler-accuracy 0.85"
)
@click.argument("half_width", type=float)
@click.argument("files", nargs=-1, metavar="[PILOT...]")
@option("n-categories", "Number of categories.", type=int)
@option("prevalence", "Frequency of each category, such as 4,3,1.", metavar="SHARES")
@option("annotator-accuracy", "Probability that a vote is right.", type=float)
@option("labeler-accuracy", "Probability that a suggested label is right.", type=float)
@option("votes", "Votes per item.", type=int)
@option("pool", "Number of items in the whole data set.", type=int)
@option("assurance", _ASSURANCE, type=float, default=0.9)
@options.combine(options.FORMAT, options.LEVEL, options.ROLES_OF_ONE)
def plan(half_width: float, **given: Any) -> None:
    """Compute how many items and votes are needed.

    For a confidence interval of kappa plus or minus HALF_WIDTH, such as 0.05. PILOT is a data file with votes and
    suggested labels, as for score. Without PILOT, give --n-categories, --annotator-accuracy and --labeler-accuracy.
    """
    names = ("n_categories", "annotator_accuracy", "labeler_accuracy", "votes", "pool", "confidence_level", "assurance")
    assumed = {name: given[name] for name in names}
    if given["prevalence"] is not None:
        assumed["prevalence"] = _numbers(given["prevalence"])
    source = Input({name: value for name, value in given.items() if name != "pool"})
    with Progress(None, "planning"):
        pilot: Any = None
        if given["files"]:
            kappas = _kappas(source, None)
            pilot = kappas[only(kappas)]
        elif source.roles or source.suggested or given["where"] or given["exclude_annotator"]:
            message = "Columns are named, but there is no pilot."
            raise invalid("pilot", message, code="pilot-missing", hint="Give its file.")
        found = dhkappa.plan(half_width, pilot, **assumed)
    if given["output_format"] == "json":
        click.echo(json_text("plan", found.to_dict() | left_out(source.data if pilot else None)))
    else:
        say_left_out(source.data if pilot else None)
        _terminal().plan(found, pilot.n_items if pilot else None)


def _numbers(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        message = f"Invalid --prevalence: expected numbers separated by commas, such as 4,3,1, got {text!r}."
        raise invalid("prevalence", message) from None


commands.add_command(tally)


@commands.command(epilog="Example: dhkappa demo --n-items 1000 --seed 7 -o demo")
@option("n-items", "Number of tickets.", default=400, type=click.IntRange(1, 1_000_000))
@option("seed", "Seed of the simulation.", default=1, type=click.IntRange(0))
@option("output", "Folder to write.", "-o", default="dhkappa-demo", metavar="FOLDER")
@options.FORMAT
def demo(n_items: int, seed: int, output: str, output_format: str) -> None:
    """Simulate data, audit it and write the report.

    Support tickets in five categories, labeled by a keyword rule and an LLM. Five annotators, one of them careless,
    vote on each ticket; one vote in four is missing.
    """
    import shutil  # takes time

    from dhkappa.cli.demo import FILES, make_folder, write_demo
    from dhkappa.report.html import check_requirements

    votes, tickets, report = [os.path.join(output, name) for name in FILES]
    make_folder(output)
    title = f"{n_items:,} simulated support tickets"
    missing = ""
    with Progress(None, "simulating") as progress:
        write_demo(output, n_items, seed)
        progress.describe("auditing")
        found = dhkappa.audit(votes, items=tickets, progress=False, rng=seed)
        name = "dhkappa"
        if not shutil.which(name):
            module = os.path.basename(sys.argv[0]) == "__main__.py"
            name = f"{shlex.quote(sys.executable)} -m dhkappa" if module else shlex.quote(sys.argv[0])
        command = f"{name} {shlex.join(['audit', votes, '--items', tickets, '-o', report])}"
        queue = shlex.join(["review", votes, "--items", tickets, "--suggested", found.ranking[0], "-o", "review.csv"])
        try:
            check_requirements()
        except DataError as error:
            missing = str(error)
        else:
            progress.describe("writing the report")
            found.to_html(report, title=title, command=command)
    if output_format == "json":
        written = {"files": [votes, tickets], "report": None if missing else report}
        click.echo(json_text("demo", written | {"audit": found.to_dict()}))
        return
    shown = _terminal()
    shown.audit(found, f"{title}, up to 5 votes each, 2 labelers", review=f"{name} {queue}")
    shown.paragraph(
        "The data is simulated. Compare the two labelers: their kappas differ, while Fleiss' kappa is the same for "
        "both. Among the annotators, eli votes carelessly."
    )
    shown.paragraph(f"The data is in {votes} and {tickets}. To repeat the audit:")
    click.echo(f"  {visible(command)}")
    shown.paragraph(f"No report was written. {missing}" if missing else f"Report: {report}")


@commands.command(epilog='Example: eval "$(dhkappa completion bash)" in ~/.bashrc')
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print a script for shell completion."""
    from click.shell_completion import get_completion_class

    script: Any = get_completion_class(shell)
    made = script(commands, {}, "dhkappa", "_DHKAPPA_COMPLETE")
    click.echo(made.source_template % made.source_vars())  # its source() would start the shell


def _terminal() -> Terminal:
    """Return a writer of results to standard output."""
    from dhkappa.report.terminal import Terminal

    return Terminal()


def _gate(
    kappas: Mapping[str, Kappa],
    given: Mapping[str, Any],
    problems: Sequence[Problem],
    without: Callable[[str], Any],
) -> Gate | None:
    """Test the gate, and set the exit code: 1 if a labeler fails, 3 if one is undecided, 2 if the data has errors."""
    check_items(kappas, given["files"])
    errors, meta = open_errors(problems), click.get_current_context().meta
    if all(any(error.concerns(name) for error in errors) for name in kappas):
        code = errors[0].code
        meta[EXIT] = f"No labeler can be judged, because of {code}. To accept it, add --allow {code}.", 2
    if given["fail_under"] is None and given["min_coverage"] is None:
        for name in ("keep", "margin"):
            if given[name] is not None:
                raise invalid(name, f"{name} needs a gate.", code="option-unused", hint="Pass $fail_under annotators.")
        return None
    from dhkappa.stats.gate import gate_of

    level = given["confidence_level"]
    tested = {name: (kappa.estimate, kappa.confidence_interval(level)) for name, kappa in kappas.items()}
    names = ("fail_under", "on", "keep", "margin", "min_coverage")
    gate = gate_of(tested, **{name: given[name] for name in names}, problems=problems, without=without)
    if errors:
        meta[EXIT] = f"The gate cannot be tested: {errors[0].text(flag)}", 2
    elif gate.outcome != "pass":
        meta[EXIT] = gate.text, {"fail": 1, "undecided": 3}[gate.outcome]
    return gate


def _show_passed(gate: Gate | None) -> None:
    """Print the outcome of a gate that is passed; any other is the message of the exit code."""
    if gate is not None and gate.outcome == "pass":
        _terminal().gate(gate)
