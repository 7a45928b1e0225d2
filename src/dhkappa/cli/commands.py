"""The command line: a command for each of the library's calls."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import sys
from collections.abc import Mapping
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any

import click

from dhkappa.cli.options import Asked, answer, check_target, in_flags, is_tally, matches, options, sum_of
from dhkappa.cli.runtime import BELOW, Commands, run
from dhkappa.errors import DataError, masked
from dhkappa.progress import Waiting
from dhkappa.version import __version__

if TYPE_CHECKING:
    from dhkappa.report.content import Story
    from dhkappa.report.terminal import Screen
    from dhkappa.stats.result import Kappa

JSON_VERSION = 1
"""Of what ``--json`` prints: it changes where a key changes its meaning or goes."""

_FILES = click.argument("files", nargs=-1, required=True, metavar="FILE...")
_SEED = click.option("--seed", type=click.IntRange(0), help="For what is drawn at random: the same draws again.")


def main(args: list[str] | None = None) -> None:
    """Run the command line, and end the process with its exit code."""
    run(commands, args)


@click.group(cls=Commands)
@click.version_option(__version__, prog_name="dhkappa")
def commands() -> None:
    """Can we trust these labels? Score suggested labels against annotators' votes.

    FILE is CSV, TSV, JSON, JSONL or Parquet, an export of Label Studio, Prodigy, doccano or Argilla, a table of a
    database (postgresql://...), or a tally. Columns called suggested or suggested_*, ann_* or annotator_*, item, label,
    annotator and count are understood; name others with the options.

    \b
    Examples: dhkappa demo
              dhkappa audit votes.csv -o report.html
              dhkappa audit annotations.csv --items items.csv --fail-under 0.6
    """  # noqa: D301


@commands.command(epilog="Example: dhkappa audit annotations.csv --items items.csv -o report.html")
@_FILES
@click.option("--output", "-o", metavar="FILE", help="Write the report to this HTML file.")
@click.option("--title", metavar="TEXT", help="Title of the report; by default the name of the file.")
@options("json", "gate", "layout", "sample", "pool", "level", "ordinal")
@_SEED
def audit(files: tuple[str, ...], output: str | None, title: str | None, **said: Any) -> None:
    """Answer every question, and write the report.

    Can the labels be trusted, which labeler is better, which categories and items are wrong, and are people better?
    """
    import dhkappa

    check_target(output, [*files, said["items"]], (".html", ".htm"))
    if output is not None:
        _check_report()
    asked = Asked(files, said)
    more = f" and {len(files) - 3} more" if len(files) > 3 else ""
    title = title or f"Label audit: {', '.join(map(_name, files[:3]))}{more}"
    with Waiting("counting votes") as waiting:
        found = asked.call(
            dhkappa.audit,
            pool=asked.pool(),
            panel=said["panel"],
            ordinal=said["ordinal"],
            level=said["level"],
            rng=said["seed"],
            progress=False,
        )
        judged = found.ordinal or found.kappas
        gate = _gate(judged, said)
        story = _in_flags(found.story(title=title, command=_command()))
        if output is not None:
            from dhkappa.report.html import write_report

            waiting.now("writing the report")
            write_report(story, output)
    if said["as_json"]:
        _print_json("audit", found.to_dict() | {"report": output}, gate)
    else:
        _screen().audit(story)
        if gate and found.ordinal and all(gate["passed"].values()):  # the verdict has the plain kappa
            click.echo(f"\nNot {_shown(_told(judged, said))}")
        if output is not None:
            click.echo(f"\nReport: {_shown(output)}")


@commands.command(epilog="Example: dhkappa score votes.csv --suggested llm --annotators 'ann_*'")
@_FILES
@options("json", "gate", "layout", "sample", "pool", "level", "ordinal")
def score(files: tuple[str, ...], **said: Any) -> None:
    """Compute kappa of each labeler.

    With its interval, what random labels would score (floor) and what the panel's own labels would (ceiling).
    """
    import dhkappa

    asked = Asked(files, said)
    with Waiting("counting votes"):
        kappas = _scores(dhkappa, asked, said)
    gate = _gate(kappas, said)
    if said["as_json"]:
        labelers = {name: kappa.to_dict(said["level"]) for name, kappa in kappas.items()}
        _print_json("score", {"level": said["level"], "labelers": labelers}, gate)
    else:
        _screen().scores(kappas, said["level"])


def _scores(dhkappa: Any, asked: Asked, said: Mapping[str, Any]) -> dict[str, Kappa]:
    """Return the kappa of each labeler, from one count of all."""
    from dhkappa.core.tally import Tally

    names = asked.words().get("suggested")
    if isinstance(data := asked.data(), Tally):
        whole = data
        names = names or list(whole.labelers)
    else:
        whole = asked.call(dhkappa.tally, data)
        names = list(whole.labelers)
    if said["ordinal"] and not whole.declared:
        raise DataError("--ordinal needs the order of categories: pass --categories, lowest first.")
    sample = {"pool": asked.pool(), "panel": said["panel"], "ordinal": said["ordinal"]}
    unlabeled: Any = getattr(data, "unlabeled", None)
    if not names and unlabeled:
        raise DataError(unlabeled)
    if not names and len(whole) and whole.patterns.suggested.max() < 0:
        raise DataError("suggested labels are absent: name their columns with --suggested, or their file with --items.")
    if not names:
        return {"labeler": answer(dhkappa.dh_kappa, whole, **sample)}
    return {name: answer(dhkappa.dh_kappa, whole, name, **sample) for name in names}


@commands.command(epilog="Example: dhkappa compare votes.csv --suggested rule,llm")
@_FILES
@options("json", "gate", "layout", "sample", "pool", "level")
@_SEED
def compare(files: tuple[str, ...], **said: Any) -> None:
    """Compare labelers on the same items, in pairs."""
    import dhkappa

    asked = Asked(files, said)
    with Waiting("counting votes"):
        found = asked.call(
            dhkappa.compare, pool=asked.pool(), panel=said["panel"], level=said["level"], rng=said["seed"]
        )
    gate = _gate(found.kappas, said)
    if said["as_json"]:
        _print_json("compare", found.to_dict(), gate)
    else:
        _screen().comparison(found)


@commands.command(epilog="Example: dhkappa items votes.csv --suggested llm --most 200 -o review.csv")
@_FILES
@click.option("--output", "-o", metavar="FILE", help="Write to this CSV file; by default to standard output.")
@click.option("--most", "-n", type=click.IntRange(1), help="How many items; by default all.")
@click.option("--rejected", is_flag=True, help="Only items where annotators agree on another label more than on this.")
@click.option("--raw", is_flag=True, help="Leave texts as they are, also those a spreadsheet takes for formulas.")
@options("json", "layout", "sample", "pool")
def items(files: tuple[str, ...], output: str | None, most: int | None, rejected: bool, raw: bool, **said: Any) -> None:
    """Write the items to review as CSV.

    The review queue: items whose label the panel most clearly rejects come first.
    """
    import dhkappa
    from dhkappa.paths import write_whole
    from dhkappa.report.csv import sheet_of

    if output != "-":
        check_target(output, [*files, said["items"]], (".json",) if said["as_json"] else (".csv",))
    asked = Asked(files, said)
    with Waiting("counting votes"):
        found = asked.call(dhkappa.audit, pool=asked.pool(), panel=said["panel"], progress=False)
        if len(found.labelers) > 1:
            raise DataError(f"choose one labeler with --suggested: {', '.join(found.labelers)}.")
        _gate(found.kappas, said)
        queue = found.items(most=most or max(found.kappas[found.labelers[0]].n_items, 1))
        if rejected:
            queue = queue.where(lambda row: row["differential"] < 0)
    if said["as_json"]:
        result = {"labeler": found.labelers[0], "n_items": found.kappas[found.labelers[0]].n_items}
        text = _json("items", result | {"items": queue.to_json()}, None) + "\n"
    else:
        text = sheet_of(queue, safe=not raw)
    if output in (None, "-"):
        if sys.stdout.isatty():  # which might obey what is written
            text = "".join(f"{_shown(line)}\n" for line in text.splitlines())
        elif hasattr(sys.stdout, "reconfigure"):  # a file or a pipe gets UTF-8, whatever the terminal's language is
            sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")
        sys.stdout.write(text)  # where click would take escape sequences out
    else:
        write_whole(str(output), text, "review queue")
        click.echo(f"{len(queue):,} items written to {_shown(str(output))}.", err=True)


@commands.command(
    epilog="Examples: dhkappa plan 0.05 --categories 5 --accuracy 0.9 --labeler 0.85;  dhkappa plan 0.03 pilot.csv"
)
@click.argument("half_width", type=float)
@click.argument("files", nargs=-1, metavar="[PILOT...]")
@click.option("--categories", type=int, help="How many categories there are.")
@click.option("--prevalence", metavar="SHARES", help="How often each category is the truth, such as 4,3,1.")
@click.option("--accuracy", type=float, help="How often a vote is right.")
@click.option("--labeler", type=float, help="How often a suggested label is right.")
@click.option("--votes", type=int, help="Votes on an item.")
@click.option("--pool", type=int, help="Items in the whole data set.")
@click.option("--assurance", type=float, default=0.9, show_default=True, help="How surely the half-width is reached.")
@options("json", "level", "layout")
def plan(half_width: float, files: tuple[str, ...], **said: Any) -> None:
    """Find how many items and votes are needed.

    For an interval of HALF_WIDTH, such as 0.05: from a pilot, or from how often votes and labels are right.
    """
    import dhkappa

    asked = Asked(files, said)
    names = ("categories", "accuracy", "labeler", "votes", "pool", "level", "assurance")
    words = {name: said[name] for name in names}
    if said["prevalence"] is not None:
        words["prevalence"] = _numbers(said["prevalence"])
    with Waiting("planning"):
        pilot: Any = None
        if files:
            kappas = _scores(
                dhkappa, Asked(files, said | {"categories": (), "pool": ()}), {"panel": "fixed", "ordinal": None}
            )
            if len(kappas) > 1:
                raise DataError(f"choose one labeler of the pilot with --suggested: {', '.join(kappas)}.")
            pilot = next(iter(kappas.values()))
        elif asked.words(sample=False):
            raise DataError("columns are named, but no pilot: name its file.")
        found = dhkappa.plan(half_width, pilot, **words)
    if said["as_json"]:
        _print_json("plan", found.to_dict(), None)
    else:
        _screen().plan(found, pilot.n_items if pilot else None)


def _numbers(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise DataError(f"--prevalence must be numbers with commas between, such as 4,3,1: got {text!r}.") from None


@commands.group(epilog="Example: dhkappa tally add monday.json tuesday.json -o week.json")
def tally() -> None:
    """Keep counts in a file, and add them up.

    Make one a day, add them up, and score or audit the sum.
    """


@tally.command("make", epilog="Example: dhkappa tally make votes.csv --suggested llm -o monday.json")
@_FILES
@click.option("--output", "-o", required=True, metavar="FILE", help="Tally file to write.")
@options("json", "layout", "sample")
def tally_make(files: tuple[str, ...], output: str, **said: Any) -> None:
    """Count votes and suggested labels into a tally file."""
    import dhkappa

    check_target(output, [*files, said["items"]], (".json",))
    if any(map(is_tally, chain.from_iterable(map(matches, files)))):
        raise DataError("a tally is among the files: add tallies with dhkappa tally add.")
    with Waiting("counting votes"):
        whole = Asked(files, said).call(dhkappa.tally)
        whole.save(output)
    _show_tally("tally make", whole, output, said["as_json"])


@tally.command("add", epilog="Example: dhkappa tally add monday.json tuesday.json -o week.json")
@_FILES
@click.option("--output", "-o", required=True, metavar="FILE", help="Tally file to write.")
@options("json")
def tally_add(files: tuple[str, ...], output: str, as_json: bool) -> None:
    """Add tallies up: the sum is the tally of all their items."""
    check_target(output, files, (".json",))
    paths = list(chain.from_iterable(map(matches, files)))
    strange = [path for path in paths if os.path.exists(path) and not is_tally(path)]
    if strange:
        raise DataError(f"{strange[0]!r} is no tally: make one of it with dhkappa tally make.")
    with Waiting("adding"):
        whole = sum_of(paths)
        whole.save(output)
    _show_tally("tally add", whole, output, as_json)


@tally.command("show", epilog="Example: dhkappa tally show week.json")
@click.argument("file")
@options("json")
def tally_show(file: str, as_json: bool) -> None:
    """Show what a tally file holds."""
    from dhkappa.core.tally import Tally

    _show_tally("tally show", Tally.load(file), file, as_json)


def _show_tally(command: str, whole: Any, path: str, as_json: bool) -> None:
    if as_json:
        result = {
            "path": path,
            "n_items": whole.n_items,
            "n_votes": whole.n_votes,
            "n_patterns": len(whole),
            "categories": list(whole.categories),
            "labelers": list(whole.labelers),
        }
        _print_json(command, result, None)
    else:
        click.echo(f"{_shown(path)}: {whole!r}")


@commands.command(epilog="Example: dhkappa demo --items 1000 --seed 7 -o demo")
@click.option("--items", default=400, show_default=True, type=click.IntRange(1, 1_000_000), help="Tickets to simulate.")
@click.option("--seed", default=1, show_default=True, type=click.IntRange(0), help="Seed: the same data again.")
@click.option("--output", "-o", default="dhkappa-demo", show_default=True, metavar="FOLDER", help="Where to write.")
@options("json")
def demo(items: int, seed: int, output: str, as_json: bool) -> None:
    """Simulate data, audit them, write the report.

    Support tickets in five categories: five annotators, one of them careless, vote on each ticket and skip one vote in
    four; a keyword rule and an LLM have suggested labels.
    """
    import dhkappa
    from dhkappa.cli.demo import CARELESS, FILES, check_folder, write_demo
    from dhkappa.paths import told

    if "://" in output or masked(output) != output:
        raise DataError(f"{output!r} is an address, and the demo is written into a folder: name one with --output.")
    try:
        os.makedirs(output, exist_ok=True)
    except OSError as error:
        raise DataError(f"cannot make the folder {output!r}: {told(error)}.") from None
    check_folder(output)
    report: str | None = os.path.join(output, FILES[2])
    with Waiting("simulating") as waiting:
        votes, tickets = write_demo(output, items, seed)
        waiting.now("auditing")
        found = dhkappa.audit(votes, items=tickets, progress=False, rng=seed)
        name = "dhkappa" if shutil.which("dhkappa") else shlex.quote(sys.argv[0])
        command = f"{name} audit {shlex.quote(votes)} --items {shlex.quote(tickets)} -o {shlex.quote(str(report))}"
        try:
            _check_report()
        except DataError as error:
            report, missing = None, str(error)
        if report is not None:
            waiting.now("writing the report")
            found.report(report, title=f"{items:,} simulated support tickets", command=command)
    if as_json:
        _print_json("demo", {"files": [votes, tickets], "report": report, "audit": found.to_dict()}, None)
        return
    screen = _screen()
    screen.audit(found.story(title=f"{items:,} simulated support tickets, up to 5 votes each, 2 labelers"))
    screen.say(
        "The data are simulated. Look at the two labelers on the scale, far apart though Fleiss' kappa is the same for "
        f"both; at {CARELESS}, who votes carelessly, among the annotators; and at the tickets to review first."
    )
    screen.say(f"The data are in {votes} and {tickets}; the same audit again:")
    click.echo(f"  {command}")
    screen.say(f"The report to open: {report}" if report else f"No report was written: {missing}")


@commands.command(epilog='Example: eval "$(dhkappa completion bash)" in ~/.bashrc')
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print a script for shell completion."""
    from click.shell_completion import get_completion_class

    script: Any = get_completion_class(shell)
    made = script(commands, {}, "dhkappa", "_DHKAPPA_COMPLETE")
    click.echo(made.source_template % made.source_vars())  # its source() would run the shell first


def _check_report() -> None:
    """Refuse, before any work, to write a report that needs what is absent."""
    from importlib.util import find_spec

    absent = [name for name in ("altair", "jinja2", "vl_convert") if find_spec(name) is None]
    if absent:
        raise DataError(f"the report needs {' and '.join(absent)}: pip install 'dhkappa[report]'.")
    from dhkappa.report.html import check_drawing

    check_drawing()


def _screen() -> Screen:
    from dhkappa.report.terminal import Screen

    return Screen(in_flags)


def _shown(path: str) -> str:
    from dhkappa.table import visible

    return visible(path)


def _command() -> str:
    """Return the command as it was typed, without a password in it."""
    return shlex.join(["dhkappa", *map(_covered, sys.argv[1:])])


def _covered(word: str) -> str:
    """Cover the password of an address that is all of a word, whatever signs it has."""
    return masked(re.sub(r"(://[^:/@]*):.*@", r"\1:***@", word, flags=re.DOTALL))


def _name(path: str) -> str:
    """Return what a file is called in a title: nothing of an address but its end."""
    return os.path.basename(_covered(path).partition("?")[0]) if "://" in path else os.path.basename(path)


def _in_flags(story: Story) -> Story:
    """Write the sentences of a story in the words of the command line."""
    return replace(story, verdict=in_flags(story.verdict), notes=tuple(map(in_flags, story.notes)))


def _gate(kappas: Mapping[str, Kappa], said: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return what was asked of the labelers, and have the command end by it; an undefined kappa does not pass."""
    if not any(kappa.n_items or kappa.dropped.total for kappa in kappas.values()):
        raise DataError("the data hold no items.")
    bar = said.get("fail_under")
    if bar is None:
        return None
    passed = {name: _reached(kappa, said) >= bar for name, kappa in kappas.items()}  # never of NaN
    if not all(passed.values()):
        low = {name: kappa for name, kappa in kappas.items() if not passed[name]}
        click.get_current_context().meta[BELOW] = _told(low, said)
    metric = next(kappa.metric for kappa in kappas.values())
    return {"fail_under": bar, "on": said["on"], "metric": metric, "passed": passed}


def _reached(kappa: Kappa, said: Mapping[str, Any]) -> float:
    return kappa.value if said["on"] == "value" else kappa.interval(said["level"]).low


def _told(kappas: Mapping[str, Kappa], said: Mapping[str, Any]) -> str:
    """Say what labelers that are below the bar have reached."""
    low = []
    for name, kappa in kappas.items():
        which, reached = "ordinal kappa" if kappa.metric == "ordinal" else "", _reached(kappa, said)
        what = which or "kappa" if said["on"] == "value" else f"lower bound of {which}" if which else "lower bound"
        low.append(f"{name} ({what} {reached:.4f})" if reached == reached else f"{name} ({what} undefined)")
    return f"below --fail-under {said['fail_under']:g}: {', '.join(low)}."


def _json(command: str, result: Mapping[str, Any], gate: Mapping[str, Any] | None) -> str:
    told = {"dhkappa": __version__, "version": JSON_VERSION, "command": command, "gate": gate, "result": result}
    return json.dumps(told, allow_nan=False, indent=2)


def _print_json(command: str, result: Mapping[str, Any], gate: Mapping[str, Any] | None) -> None:
    click.echo(_json(command, result, gate))
