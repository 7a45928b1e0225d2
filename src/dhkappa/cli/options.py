"""What a person may say on the command line, in the same words as in Python."""

from __future__ import annotations

import csv
import glob
import os
import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, combinations
from typing import TYPE_CHECKING, Any, TypeVar

import click

from dhkappa.errors import DataError
from dhkappa.paths import is_stream

if TYPE_CHECKING:
    from dhkappa.core.tally import Tally

_HEAD = 1 << 14  # bytes at either end of a file that tell what it is
Command = TypeVar("Command", bound=Callable[..., Any])


def _kappa(ctx: click.Context, param: click.Parameter, value: float | None) -> float | None:
    """Refuse what no kappa can be."""
    if value is not None and not -1.1 <= value <= 1:
        raise click.BadParameter(f"{value} is no kappa, which is from -1.1 to 1.")
    return value


_LIST = "Separate several by commas, or repeat the option."
_LAYOUT = (
    click.option("--suggested", "-s", multiple=True, metavar="COLUMN", help=f"Columns of suggested labels. {_LIST}"),
    click.option("--annotators", "-a", multiple=True, metavar="COLUMN", help="Columns of votes, or patterns: 'ann_*'."),
    click.option("--item", metavar="COLUMN", help="Column that names the item."),
    click.option("--label", metavar="COLUMN", help="Column with the label of a vote, where a row is a vote."),
    click.option("--annotator", metavar="COLUMN", help="Column that says who voted; '' for none."),
    click.option("--count", metavar="COLUMN", help="Column with the number of votes for the label; '' for none."),
    click.option("--counts", multiple=True, metavar="COLUMN", help="Columns that count votes, one a category."),
    click.option("--items", metavar="FILE", help="Second file, with a row for each item and its suggested labels."),
    click.option("--duplicates", type=click.Choice(["error", "first", "last"]), help="If an annotator votes twice."),
    click.option("--unlisted", type=click.Choice(["error", "unlabeled"]), help="If --items lacks an item."),
    click.option("--missing", multiple=True, metavar="LABEL", help="Labels that mean missing, such as NA."),
    click.option("--format", metavar="FORMAT", help="table, label_studio, prodigy, doccano or argilla."),
    click.option("--question", metavar="NAME", help="Which question of an export."),
    click.option("--table", metavar="NAME", help="Which table of a database, as FILE is postgresql://..."),
)
_SAMPLE = (
    click.option("--categories", multiple=True, metavar="LABEL", help="All labels there can be, in order."),
    click.option("--weights", metavar="COLUMN", help="Column with what each item stands for."),
    click.option("--strata", metavar="COLUMN", help="Column with the group that each item was drawn from."),
)
_POOL = (
    click.option("--pool", multiple=True, metavar="N", help="Items in the whole data set, or STRATUM=N for each."),
    click.option(
        "--panel", type=click.Choice(["fixed", "drawn"]), default="fixed", help="Which annotators, with --pool."
    ),
)
_LEVEL = (click.option("--level", type=float, default=0.95, show_default=True, help="Level of intervals."),)
_ORDINAL = (click.option("--ordinal", type=click.Choice(["linear", "quadratic"]), help="Part credit for near votes."),)
_JSON = (click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text."),)
_GATE = (
    click.option(
        "--fail-under",
        type=float,
        callback=_kappa,
        metavar="X",
        help="Exit with 1 if a labeler's lower bound is below X.",
    ),
    click.option("--on", type=click.Choice(["low", "value"]), default="low", help="What X is for: bound or estimate."),
)
_NONE = ("annotator", "count")  # which are empty for none
PARTS = {
    "layout": _LAYOUT,
    "sample": _SAMPLE,
    "pool": _POOL,
    "level": _LEVEL,
    "ordinal": _ORDINAL,
    "json": _JSON,
    "gate": _GATE,
}


def options(*parts: str) -> Callable[[Command], Command]:
    """Give a command some groups of options."""

    def give(command: Command) -> Command:
        for option in reversed([option for part in parts for option in PARTS[part]]):
            command = option(command)
        return command

    return give


def refuse_empty(command: click.Command, said: dict[str, Any]) -> None:
    """Refuse options that are empty, as where a script's variable is not set: they would be passed over."""
    for option in command.params:
        given = said.get(option.name or "")
        if not isinstance(option, click.Option) or option.name in _NONE or "" not in (given, *_tuple(given)):
            continue
        if option.name == "missing":
            raise DataError("--missing is empty, and empty text is missing anyway: leave it out.")
        other = "" if option.required else ", or leave it out"
        raise DataError(f"{option.opts[0]} is empty: give {option.metavar or 'a value'}{other}.")


def _tuple(given: Any) -> tuple[Any, ...]:
    return given if isinstance(given, tuple) else ()


_NOT_OF_TALLIES = (
    *("annotators", "item", "label", "annotator", "count", "counts", "items", "duplicates", "unlisted", "missing"),
    *("format", "question", "table", "weights", "strata"),
)


@dataclass(frozen=True, slots=True)
class Asked:
    """What was asked about which files.

    Attributes
    ----------
    files : paths, patterns, or the address of a database
    said : the options by name
    """

    files: tuple[str, ...]
    said: dict[str, Any]

    def data(self) -> Any:
        """Return what to pass as data: a tally where the files are tallies, else what ``read`` makes of them."""
        from dhkappa.inputs.reading import read

        files = list(chain.from_iterable(matches(file) for file in self.files))
        tallies = [file for file in files if is_tally(file)]
        if tallies and len(tallies) < len(files):
            raise DataError(
                f"{tallies[0]!r} is a tally, and others are not: make them tallies first, or score it alone."
            )
        if tallies:
            extra = [f"--{word}" for word in _NOT_OF_TALLIES if self.said.get(word) not in (None, ())]
            if extra:
                raise DataError(
                    f"a tally holds votes and labels already, so {' and '.join(extra)} would change nothing: leave "
                    f"{'it' if len(extra) == 1 else 'them'} out."
                )
            return sum_of(tallies)
        path: Any = self.files[0] if len(self.files) == 1 else list(self.files)
        return read(path, **{word: self.said.get(word) for word in ("format", "question", "table")})

    def words(self, *, sample: bool = True) -> dict[str, Any]:
        """Return the rest of what was said, as the calls of the library take it."""
        found: dict[str, Any] = {}
        for word in ("suggested", "annotators", "counts"):
            if names := several(self.said.get(word, ())):
                found[word] = names
        if len(found.get("annotators", ())) == 1:
            found["annotators"] = found["annotators"][0]  # may be a pattern
        if len(found.get("counts", ())) == 1:
            found["counts"] = found["counts"][0]
        for word in ("item", "label", "items", "duplicates", "unlisted"):
            if self.said.get(word):
                found[word] = self.said[word]
        for word in ("annotator", "count"):  # empty for none
            if self.said.get(word) is not None:
                found[word] = self.said[word] or None
        missing = several(self.said.get("missing", ()))
        if missing:
            found["missing"] = [*missing, *_whole(missing)]
        if sample:
            found |= {word: self.said[word] for word in ("weights", "strata") if self.said.get(word)}
        return found

    def call(self, ask: Callable[..., Any], data: Any = None, **more: Any) -> Any:
        """Ask one of the library's calls about the data, with all that was said of them."""
        data, words = self.data() if data is None else data, self.words() | more
        categories = several(self.said.get("categories", ()))
        return answer(ask, data, **words | ({"categories": categories} if categories else {}))

    def pool(self) -> Any:
        """Return the size of the pool, or of each stratum of it."""
        given = self.said.get("pool", ())
        if not given:
            return None
        if len(given) == 1 and "=" not in given[0]:
            return _size(given[0])
        sizes = several(given)
        pairs = [size.rpartition("=") for size in sizes]
        if not all(sign for _, sign, _ in pairs):
            raise DataError(f"--pool must be one number, or STRATUM=NUMBER for each stratum: got {', '.join(sizes)}.")
        if len({stratum for stratum, _, _ in pairs}) < len(pairs):
            raise DataError(f"--pool names a stratum twice: got {', '.join(sizes)}.")
        return {stratum: _size(size) for stratum, _, size in pairs}


def answer(ask: Callable[..., Any], *data: Any, **words: Any) -> Any:
    """Ask with categories and strata as text, or else as the whole numbers or truth values that a typed file holds."""
    try:
        return ask(*data, **words)
    except DataError:
        typed = {word: other for word in ("categories", "pool") if (other := _typed(words.get(word)))}
        for number in range(len(typed)):
            for chosen in combinations(typed, number + 1):
                with suppress(DataError):
                    return ask(*data, **words | {word: typed[word] for word in chosen})
        raise


def _typed(given: Any) -> Any:
    """Return labels, or sizes by label, as whole numbers or truth values; None unless all are, and differ."""
    if not isinstance(given, (list, dict)):
        return None
    values = [text == "True" for text in given if text in ("True", "False")] or _whole(given)
    if len(set(values)) < len(given):
        return None
    return dict(zip(values, given.values(), strict=True)) if isinstance(given, dict) else values


def several(given: Iterable[str]) -> list[str]:
    """Return the names in some options: commas separate them, and quotes hold a name with commas together."""
    found: list[str] = []
    for text in given:
        try:
            found += next(csv.reader([text], strict=True, skipinitialspace=True), [])
        except csv.Error:  # a name with quotes or line breaks of its own
            found.append(text)
    return found


def matches(path: str) -> list[str]:
    """Return the file of that name, or what matches it as a pattern; the name itself where nothing does."""
    return [path] if os.path.exists(path) else sorted(glob.glob(path, recursive=True)) or [path]


def sum_of(paths: Sequence[str]) -> Tally:
    """Add up tally files; one that is named twice would count twice."""
    from dhkappa.core.tally import Tally

    places = [os.path.realpath(path) for path in paths]
    if len(set(places)) < len(places):
        raise DataError("a tally is named twice: its items would count twice.")
    whole = Tally.load(paths[0])
    for path in paths[1:]:
        whole = whole + Tally.load(path)
    return whole


def is_tally(path: str) -> bool:
    """Tell a tally from other files, however it is laid out, by what stands at its beginning or end."""
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


def check_target(path: str | None, inputs: Sequence[str | None], endings: Sequence[str]) -> None:
    """Refuse, before any work, to write where nothing can be written, or over what is read."""
    if path is None:
        return
    if not path.lower().endswith(tuple(endings)) and not is_stream(path) and not os.path.isdir(path):
        raise DataError(f"{path!r} should end in {' or '.join(endings)}, as that is what is written to it.")
    for other in chain.from_iterable(matches(name) for name in inputs if name is not None):
        if os.path.exists(path) and os.path.exists(other) and os.path.samefile(path, other):
            raise DataError(f"{path!r} is one of the files to read, and would be written over: name another.")
    folder = os.path.dirname(os.path.realpath(path))
    if not os.path.isdir(folder):
        raise DataError(f"cannot write {path!r}: there is no folder {folder!r}.")
    if os.path.isdir(path) or not os.access(path if is_stream(path) else folder, os.W_OK):
        raise DataError(
            f"cannot write {path!r}: " + ("it is a folder." if os.path.isdir(path) else "see who may write there.")
        )


_WORDS = (
    "suggested|annotators|annotator|item|items|label|counts|count|duplicates|unlisted|categories|missing|weights|strata|"
    "pool|panel|format|question|table|level|ordinal|accuracy|labeler|votes|prevalence|assurance"
)


_SAID = {
    "pilot=, the kappa of some items": "the file of a pilot",
    "Pass None as the labels of a labeler who was absent.": (
        "Give the file where a labeler was absent an empty column for it, and make its tally anew."
    ),
}


def in_flags(message: str) -> str:
    """Write a sentence of the library in the words of the command line: ``items=`` is ``--items``."""
    example = re.search(r"dh_kappa\(data, suggested=('[^']*'|\"[^\"]*\"), annotators=\[([^\]]*)\]\)", message)
    if example:
        names = ",".join(re.findall("'([^']*)'", example[2]))
        known = f"--suggested {example[1]} --annotators '{names}'"
        unknown = "--suggested COLUMN --annotators COLUMN,COLUMN"  # where no labeler was named, all may be others
        call = f"dhkappa score FILE {unknown if example[1] == repr('llm') else known}"
        message = message.replace(example[0], call)
    for said, meant in _SAID.items():
        message = message.replace(said, meant)
    return re.sub(rf"(?<!\w)'[^']*'|\"[^\"]*\"|\b({_WORDS})=(\[\.\.\.\]|None)?(?=(['\"])?)", _in_flags, message)


def _in_flags(found: re.Match[str]) -> str:
    """Write one word as an option; what is quoted stays."""
    if found[1] is None:
        return found[0]
    return f"--{found[1]}" + (" ''" if found[2] == "None" else " " if found[3] else "")


def _whole(texts: Iterable[str]) -> list[int]:
    return [int(text) for text in texts if re.fullmatch("-?[0-9]{1,18}", text)]


def _size(text: str) -> int:
    if not re.fullmatch("[0-9]{1,18}|[0-9]{1,3}([,_][0-9]{3}){1,5}", text.strip()):
        raise DataError(f"--pool must be a whole number of items: got {text!r}.")
    return int(re.sub("[_,]", "", text))
