"""The group of commands, their options, with the same names as in Python, and the data that they describe."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain
from typing import Any

import click
from click.core import ParameterSource

import dhkappa
from dhkappa.cli import discard_output, fail
from dhkappa.cli.filters import names_in_file
from dhkappa.errors import DataError, Problem, flag, invalid, shown, visible
from dhkappa.paths import expand_patterns, natural_order, system_message
from dhkappa.resources import MIB, need

EXIT = "dhkappa.exit"
"""Key of a context under which a command leaves a message and an exit code other than 0, of a gate or of the data."""
_HEAD = 1 << 14  # bytes at each end of a file that identify a tally
Function = Callable[..., Any]
Decorator = Callable[[Function], Function]


class Command(click.Command):
    """A command that writes itself into hints, as it should be run."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except DataError as error:
            files, items = ctx.params.get("files", ()), ctx.params.get("items")
            if error.code != "tables-swapped" or len(files) != 1 or items is None:
                raise
            hint = f"Swap them: {_written(ctx, files=(items,), items=files[0])}"
            raise DataError(error.message, code=error.code, parameter=error.parameter, hint=hint) from error


def _written(ctx: click.Context, **changed: Any) -> str:
    """Return the command line of a command, with some parameters changed."""
    words = ctx.command_path.split()
    for param in ctx.command.params:
        given = ctx.get_parameter_source(str(param.name)) is ParameterSource.COMMANDLINE
        if given:
            value = changed.get(str(param.name), ctx.params[str(param.name)])
            name = [max(param.opts, key=len)] if isinstance(param, click.Option) else []
            if value is True:
                words += name
            else:
                several = value if isinstance(value, tuple) else (value,)
                words += chain.from_iterable([*name, str(one)] for one in several)
    return shlex.join(words)


class Commands(click.Group):
    """A group that lists its commands in order of definition and shows its help if no command is given."""

    group_class = type
    command_class = Command

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
            discard_output()
        except KeyboardInterrupt:  # before click prints an empty line
            raise click.Abort from None
        stopped = ctx.meta.get(EXIT) if ctx.parent is None else None
        return 0 if stopped is None else fail(*stopped)


def combine(*members: Decorator) -> Decorator:
    """Combine options, or groups of them, into one decorator that keeps their order."""

    def decorate(function: Function) -> Function:
        for add in reversed(members):
            function = add(function)
        return function

    return decorate


def option(name: str, text: str, *more: str, choices: Sequence[str] = (), **settings: Any) -> Decorator:
    """Return an option with a help text; ``choices`` are the allowed values, and an empty value is an error."""
    if choices:
        settings["type"] = click.Choice(choices)
    if settings.get("default") is not None:
        settings["show_default"] = True
    return click.option(f"--{name}", *more, help=text, **{"callback": _not_empty} | settings)


def _not_empty(ctx: click.Context, param: click.Parameter, value: Any) -> Any:
    """Reject an empty option, such as an unset variable of a script; '' means none for some columns."""
    if (value == "" or (isinstance(value, tuple) and "" in value)) and param.name not in ("annotator", "count"):
        raise click.BadParameter("the value is empty.")
    return value


def _bound(ctx: click.Context, param: click.Parameter, value: str | None) -> float | str | None:
    """Read the bound of a gate: a number, ``annotators``, or a rate such as ``recall:outage=0.8``."""
    if value is None or value == "annotators" or "=" in value:
        return value
    try:
        bound = float(value)
    except ValueError:
        raise click.BadParameter(f"expected a number such as 0.6, or annotators, got {value!r}.") from None
    if 1 < bound <= 100:
        raise click.BadParameter(f"kappa is at most 1: for {value} percent, write {bound / 100:.2f}.")
    if not -1.1 <= bound <= 1:
        raise click.BadParameter(f"{value} is not a possible kappa (-1.1 to 1).")
    return bound


_column = partial(option, metavar="COLUMN")
FILES = click.argument("files", nargs=-1, required=True, metavar="FILE...")
FORMAT = option("format", "Output format.", "output_format", choices=("text", "json"), default="text")
EXCEL = option("excel", "Start a CSV file with a byte order mark, so that Excel reads it as UTF-8.", is_flag=True)
REPORT_FORMAT = option(
    "format", "Output format.", "output_format", choices=("text", "json", "markdown"), default="text"
)
LEVEL = option("confidence-level", "Level of confidence intervals.", type=float, default=0.95)
_ANY_TIME = (
    "Intervals and gate that hold however often you look while items in random order are added; in a history, of all "
    "items so far."
)
ANY_TIME = option("any-time", _ANY_TIME, is_flag=True)
SEED = option("seed", "Seed for permutation tests.", type=click.IntRange(0))
_WEIGHTS = "Agreement weights for ordered categories: votes for a category near the label get partial credit."
WEIGHTS = option("weights", _WEIGHTS, choices=("linear", "quadratic"))
_POOL = "Number of items in the whole data set, or STRATUM=N for each stratum, separated by commas."
POOL = option("pool", _POOL, multiple=True, metavar="N")
_FAIL_UNDER = (
    "Gate: exit with 1 if kappa of a labeler is below X, with 3 if more items are needed to tell. X is a number, or "
    "annotators: is the labeler nearly as good as a typical annotator? Or a rate against the votes: recall:CATEGORY=X, "
    "precision:CATEGORY=X, f1:CATEGORY=X or agreement=X."
)
_ON = "What --fail-under tests. low: confidence limits; value: kappa itself."
_KEEP = (
    "With --fail-under annotators: least score on a scale from 0 (random labels) to 1 (typical annotator); 0.8 by "
    "default."
)
_MARGIN = "With --fail-under annotators: how far kappa may be below that of a typical annotator, instead of --keep."
_COVERAGE = "Gate: exit with 1 if a labeler has labels for a smaller share of the items."
GATE = combine(
    option("fail-under", _FAIL_UNDER, callback=_bound, metavar="X"),
    option("on", _ON, choices=("low", "value"), default="low"),
    option("keep", _KEEP, type=float, metavar="SHARE"),
    option("margin", _MARGIN, type=float, metavar="X"),
    option("min-coverage", _COVERAGE, type=float, metavar="SHARE"),
)
_SUGGESTED = "Columns of suggested labels, or names of labelers, separated by commas."
_SUGGESTED_ONE = "Column of suggested labels, or name of one labeler."
_ANNOTATORS = "Wide format: columns of votes, separated by commas, or a pattern such as 'ann_*'."
_NORMALIZE = "Differences in spelling to ignore: case, spaces, unicode, numbers, separated by commas."
_MAP = "Labels to replace, such as 1=billing,2=bug, or a CSV file with two columns, old and new."
_WHERE = "Keep items or votes for which this holds, such as language=en,de or 'confidence>=0.5'. May be repeated."
_EXCLUDE = "Annotators whose votes are left out, separated by commas; @FILE for a file with one name per line."
_OTHER_ROLES = combine(
    _column("annotators", _ANNOTATORS, "-a", multiple=True),
    _column("item", "Column with the name of the item."),
    _column("label", "Long format: column with the label of the vote."),
    _column("annotator", "Long format: column with the annotator; '' if there is none."),
    _column("count", "Long format: column with the number of equal votes; '' if there is none."),
    _column("counts", "Columns of vote counts, one per category, separated by commas.", multiple=True),
    option("items", "Second file, with one row per item and its suggested labels.", metavar="FILE"),
    option("where", _WHERE, multiple=True, metavar="CONDITION"),
    option("exclude-annotator", _EXCLUDE, multiple=True, metavar="NAME"),
    option("duplicates", "What to do if an annotator has two votes on an item.", choices=("error", "first", "last")),
    _column(
        "show", "Columns to show next to items, such as their text; by default text, body, url, ...", multiple=True
    ),
    option("unlisted", "What to do with votes on items that --items does not list.", choices=("error", "unlabeled")),
    option("missing", "Labels to read as missing, such as NA, separated by commas.", multiple=True, metavar="LABEL"),
    option("normalize", _NORMALIZE, multiple=True, metavar="RULE"),
    option("map", _MAP, multiple=True, metavar="OLD=NEW"),
    option("input-format", "table, label_studio, prodigy, doccano or argilla; detected by default.", metavar="FORMAT"),
    option("question", "Question to read, if an export has several.", metavar="NAME"),
    option("sheet", "Sheet of an Excel file; the first by default.", metavar="NAME"),
    option("items-sheet", "Sheet of the Excel file of --items, which may be the same file.", metavar="NAME"),
    option("table", "Table of a database, if FILE is postgresql://...", metavar="NAME"),
)
SUGGESTED = _column("suggested", _SUGGESTED, "-s", multiple=True)
ROLES = combine(SUGGESTED, _OTHER_ROLES)
ROLES_OF_ONE = combine(_column("suggested", _SUGGESTED_ONE, "-s", multiple=True), _OTHER_ROLES)
SAMPLE = combine(
    option("categories", "All categories, in order, separated by commas.", multiple=True, metavar="LABEL"),
    _column("sample-weight", "Column with the sampling weight of each item."),
    _column("strata", "Column with the group that each item was drawn from."),
    _column("clusters", "Column with the document, conversation or user that each item comes from."),
)
_ALLOW = "Ignore the problem with this code (listed by dhkappa check)."
ALLOW = option("allow", _ALLOW, multiple=True, metavar="CODE")
ANALYSIS = combine(FILES, GATE, ROLES, SAMPLE, POOL, LEVEL, ALLOW)

_OF_TABLES = (  # options that describe tables, not tallies
    *("annotators", "item", "label", "annotator", "count", "counts", "items", "duplicates", "unlisted", "missing"),
    *("input_format", "question", "sheet", "table", "sample_weight", "strata", "clusters"),
    *("categories", "normalize", "map"),
    *("multilabel", "show", "items_sheet", "slices", "annotators_table", "where", "exclude_annotator"),
)


@dataclass(frozen=True)
class Input:
    """The data of a command, described by its options ``given``; ``files`` are paths, patterns or an address."""

    given: Mapping[str, Any]

    @cached_property
    def data(self) -> Any:
        """The data as the library takes it: a ``Tally`` if the files are tallies, else a ``Dataset``."""
        files = expand_patterns(self.given["files"])
        tallies = [file for file in files if is_tally(file)]
        if not tallies:
            return self._dataset()
        if len(tallies) < len(files):
            message = f"{tallies[0]!r} is a tally, but other files are not."
            hint = "Make tallies of the others with dhkappa tally make."
            raise invalid("data", message, code="mixed-files", hint=hint)
        if extra := [flag(name) for name in _OF_TABLES if self.given.get(name) not in (None, ())]:
            message = f"Not possible with a tally, which is already counted: {', '.join(extra)}."
            hint = "Omit the option, or pass it to dhkappa tally make."
            raise DataError(message, code="option-not-for-tally", hint=hint)
        return sum_of(tallies, self._counts)

    def _counts(self, path: str) -> dhkappa.Tally:
        """Return the counts of a tally or a saved audit; refuse to leave out the weights and the pool of an audit."""
        saved = dhkappa.SavedAudit.load(path)
        known = {"weights": "agreement weights", "pool": "a pool"}
        lost = {name: text for name, text in saved.options.items() if not self.given.get(name)}
        lost = {name: text for name, text in lost.items() if name in self.given or name == "weights"}
        if lost:
            what = " and ".join(known[name] for name in lost)
            message = f"{path!r} is a saved audit with {what}, which would be left out."
            hint = f"Pass {' '.join(f'${name}=' for name in lost)}."
            if "weights" in lost and ("weights" not in self.given or not lost["weights"]):
                hint = "Its weights cannot be passed here: run dhkappa history, or read the data again."
            raise DataError(message, code="saved-audit-options", hint=hint, options=lost)
        return saved.tally

    def _dataset(self) -> dhkappa.Dataset:
        data = self._whole_dataset()
        if conditions := self.given.get("where"):
            data = data.filter(*conditions)
        excluded = self.given.get("exclude_annotator") or ()
        names = [names_in_file(text[1:]) if text.startswith("@") else several([text]) for text in excluded]
        return data.exclude_annotators(*chain(*names)) if any(names) else data

    def _whole_dataset(self) -> dhkappa.Dataset:
        from dhkappa.inputs.files import open_sources

        files = list(self.given["files"])
        if files == sorted(files):  # as a shell expands a pattern, with day10.csv before day2.csv
            files.sort(key=natural_order)
        path: Any = files[0] if len(files) == 1 else files
        how = {name: self.given.get(name) for name in ("input_format", "question", "sheet", "items_sheet", "table")}
        try:
            source, items = open_sources(path, self.roles.get("items"), **how)
        except DataError as error:
            apart = error.options  # of votes and items in two files
            if error.code != "columns-differ" or len(files) != 2 or not {"path", "items"} <= {*apart}:
                raise
            click.echo(f"{visible(apart['items'])} is read as the table of items (--items).", err=True)
            source, items = open_sources(apart["path"], apart["items"], **how)
        roles = self.roles | ({} if items is None else {"items": items})
        dataset = dhkappa.Dataset(source, self._suggested, **roles)
        typed: dict[str, Any] = {}
        if categories := several(self.given.get("categories", ())):
            typed["categories"] = _typed(categories, dataset, "votes")
        if new := label_map(self.given.get("map", ())):
            typed["map"] = dict(zip(new, _typed(list(new.values()), dataset, "votes"), strict=True))
        return dhkappa.Dataset(source, self._suggested, **roles, **typed) if typed else dataset

    @property
    def suggested(self) -> list[str] | None:
        """The labelers to choose from the data; None for all of them."""
        return self._suggested if not self.given["files"] or isinstance(self.data, dhkappa.Tally) else None

    @property
    def _suggested(self) -> list[str] | None:
        return several(self.given.get("suggested", ())) or None

    @cached_property
    def roles(self) -> dict[str, Any]:
        """The column roles and what else describes the data, as keywords of ``Dataset``."""
        found: dict[str, Any] = {}
        for name in ("annotators", "counts"):
            if columns := several(self.given.get(name, ())):
                found[name] = columns[0] if len(columns) == 1 else columns
        names = ("item", "label", "annotator", "count", "items", "duplicates", "unlisted")
        names += ("sample_weight", "strata", "clusters")  # type: ignore[assignment]
        found |= {name: self.given[name] or None for name in names if self.given.get(name) is not None}
        if missing := several(self.given.get("missing", ())):
            found["missing"] = [*missing, *(int(text) for text in missing if _is_whole(text))]
        if shown := several(self.given.get("show", ())):
            found["show"] = shown
        if self.given.get("multilabel") is not None:
            found["multilabel"] = self.given["multilabel"]
        if rules := several(self.given.get("normalize", ())):
            found["normalize"] = rules
        if columns := several(self.given.get("slices", ())):
            found["slices"] = columns
        if self.given.get("annotators_table") is not None:
            found["annotators_table"] = self.given["annotators_table"]
        return found

    @property
    def allow(self) -> list[str]:
        """The codes of the problems that the user accepts."""
        return several(self.given["allow"])

    def check(self) -> dhkappa.Check:
        """Return the check of the data; files that cannot be read are a problem, too, but not missing ones."""
        try:
            data = self.data
        except DataError as error:
            if error.code == "file-not-found" or error.code.startswith(("option-", "invalid-")):
                raise
            return dhkappa.Check((Problem.of(error),))
        found: dhkappa.Check = data.check(allow=self.allow)
        return found

    def problems(self, fetch: bool = False) -> tuple[Problem, ...]:
        """Return the problems that counts show; single votes are fetched to find more if wanted or with a gate."""
        from dhkappa.inputs.check import find_problems

        fetch = fetch or self.given.get("fail_under") is not None
        evidence = self.data.evidence(self.suggested, ordered=self.given.get("weights") is not None, fetch=fetch)
        return find_problems(evidence, self.allow)

    def estimate_without_flagged(self, labeler: str) -> Any:
        """Return the condition that flagged annotators are left out, and kappa then; None if nobody is flagged."""
        from dhkappa.stats.annotator_scores import annotator_scores
        from dhkappa.stats.flagged import Flagged

        votes = self.data.evidence(self.suggested).item_votes
        if votes is None or votes.annotators is None:
            return None
        flagged = Flagged.of(annotator_scores(votes), votes)
        name = votes.columns.labeler(labeler if labeler in votes.columns.labelers else None)
        return None if flagged is None else (flagged.without, flagged.estimate(name, self.pool))

    @property
    def pool(self) -> Any:
        """The size of the pool, or of each of its strata."""
        given = self.given.get("pool", ())
        if not given:
            return None
        if len(given) == 1 and "=" not in given[0]:
            return _size(given[0])
        sizes = several(given)
        if not all("=" in size for size in sizes):
            raise _pool_error(f"expected one number, or STRATUM=NUMBER for each stratum, got {', '.join(sizes)}")
        of_stratum = {stratum: _size(size) for stratum, _, size in (size.rpartition("=") for size in sizes)}
        if len(of_stratum) < len(sizes):
            raise _pool_error(f"a stratum is named twice in {', '.join(sizes)}")
        return dict(zip(_typed(list(of_stratum), self.data, "strata"), of_stratum.values(), strict=True))


def _typed(texts: list[str], data: Any, part: str) -> list[Any]:
    """Convert labels from the command line to the type of the votes or strata in the data; floats are whole numbers."""
    from dhkappa.inputs.backends import kind_in

    if isinstance(data, dhkappa.Tally):
        kind = {bool: "boolean", int: "integer"}.get(type(next(iter(data.strata), "")), "text")
    else:
        table, roles = data.table, data.table.roles
        column = roles.strata if part == "strata" else roles.label or next(iter(roles.annotators), None)
        frame = table.items if part == "strata" and table.items is not None else table.votes
        kind = "text" if column is None else kind_in(frame.pick({"labels": column})[0], "labels")
    if kind in ("integer", "float") and all(map(_is_whole, texts)):
        return [int(text) for text in texts]
    if kind == "boolean" and {text.lower() for text in texts} <= {"true", "false"}:
        return [text.lower() == "true" for text in texts]
    return texts


def _is_whole(text: str) -> bool:
    return re.fullmatch("-?[0-9]{1,18}", text) is not None


def _size(text: str) -> int:
    if not re.fullmatch("[0-9]{1,18}|[0-9]{1,3}([,_][0-9]{3}){1,5}", text.strip()):
        raise _pool_error(f"expected a whole number of items, got {text!r}")
    return int(re.sub("[_,]", "", text))


def _pool_error(problem: str) -> DataError:
    return invalid("pool", f"Invalid --pool: {problem}.")


def label_map(given: Iterable[str]) -> dict[str, str]:
    """Return new labels by old ones, from pairs such as 1=billing, or from CSV files with two columns."""
    import csv

    pairs: list[tuple[str, ...]] = []
    for text in given:
        if "=" in text and not os.path.isfile(text):
            pairs += [tuple(part.strip() for part in pair.rpartition("=")[::2]) for pair in several([text])]
            continue
        try:
            with open(text, encoding="utf-8-sig", newline="") as file:
                pairs += [tuple(row) for row in csv.reader(file, strict=True) if row]
        except (OSError, UnicodeError, csv.Error) as error:
            what = f"Cannot read the file {shown([text])}: {system_message(error)}"
            raise invalid("map", f"{what}.", hint="Pass pairs such as 1=billing, or a CSV file.") from None
    for pair in pairs:
        if len(pair) != 2 or not all(pair):
            raise invalid("map", f"Invalid --map: expected an old and a new label, got {shown([','.join(pair)])}.")
    if len({old for old, _ in pairs}) < len({*pairs}):
        old = next(old for old, _ in pairs if len({new for other, new in pairs if other == old}) > 1)
        raise invalid("map", f"Invalid --map: {shown([old])} has two new labels.")
    return dict(pairs)  # type: ignore[arg-type]


def sum_of(paths: Sequence[str], load: Callable[[str], dhkappa.Tally] | None = None) -> dhkappa.Tally:
    """Add up tally files, read by ``load``."""
    load = load or dhkappa.Tally.load
    if len({os.path.realpath(path) for path in paths}) < len(paths):
        raise invalid("data", "A tally is given twice: its items would count twice.", code="duplicate-file")
    whole, known = load(paths[0]), dict[tuple[int, ...], list[str]]()
    known[whole.n_items, whole.n_votes, len(whole)] = [paths[0]]
    for path in paths[1:]:
        one = load(path)
        alike = known.setdefault((one.n_items, one.n_votes, len(one)), [])
        same = [other for other in alike if one.same_content(load(other))]
        if same:
            message = f"{same[0]!r} and {path!r} have the same content: their items would count twice."
            raise invalid("data", message, code="duplicate-file", hint="Leave one of them out.")
        alike.append(path)
        whole = whole + one
    return whole


def is_tally(path: str) -> bool:
    """Tell whether a file is a tally, from its first and last bytes."""
    try:
        if not os.path.isfile(path):
            return False
        with open(path, "rb") as file:
            head = file.read(_HEAD)
            if not re.match(rb"\s*\{", head):
                return False
            file.seek(max(0, os.fstat(file.fileno()).st_size - _HEAD))
            return any(re.search(rb'"format"\s*:\s*"dhkappa-tally"', part) for part in (head, file.read(_HEAD)))
    except (OSError, ValueError):
        return False


def check_multilabel(multilabel: str | None, category: str | None, output: str | None) -> None:
    """Refuse options that need one category, or sets of labels."""
    if multilabel is None and category is not None:
        raise invalid("category", "--category needs cells with sets of labels.", hint="Pass $multilabel, too.")
    if multilabel is not None and category is None and output is not None:
        message = "A report is about one category."
        hint = "Choose one with $category, such as --multilabel ';' --category bug -o report.html."
        raise invalid("output", message, code="report-needs-category", hint=hint)


def several(given: Iterable[str]) -> list[str]:
    """Split option values at commas; quotes protect a name that contains a comma, and a name may be a blank."""
    found: list[str] = []
    for text in filter(None, given):
        if '"' not in text:
            found += [name if name.isspace() else name.lstrip(" ") for name in text.split(",")]
            continue
        import csv  # takes time

        try:
            found += next(csv.reader([text], strict=True, skipinitialspace=True))
        except csv.Error:  # a name that contains quotes
            found.append(text)
    return found
