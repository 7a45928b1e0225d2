"""Help texts, and that docs/cli.md documents every command and option."""

import re
import shlex
from pathlib import Path

import click
import pytest

from cli_help import ALL, help_of, parse
from command import run

PAGE = Path(__file__).parents[2] / "docs" / "cli.md"
IDS = ["dhkappa " + " ".join(words) for words, _ in ALL]


@pytest.mark.parametrize(("words", "command"), ALL, ids=IDS)
def test_every_command_and_option_is_documented(words: tuple[str, ...], command: click.Command) -> None:
    text = PAGE.read_text("utf-8")
    assert f"`{' '.join(['dhkappa', *words])}" in text or not words
    for option in command.params:
        if isinstance(option, click.Option):
            assert option.help, option.name
            missing = [name for name in option.opts if not re.search(rf"(?<![\w-]){name}(?![\w-])", text)]
            assert not missing


def test_an_option_has_one_help_text() -> None:
    """Options of plan, demo and pool that share a name with others may mean something else; some take one labeler."""
    seen: dict[str, str] = {}
    for words, command in ALL:
        for option in command.params:
            if isinstance(option, click.Option) and words[:1] not in (("plan",), ("demo",)):
                text = seen.setdefault(f"{option.name}", f"{option.help}")
                known = {("review", "suggested"), ("pool", "suggested"), ("pool", "pool"), ("pool", "strata")}
                other = option.name == "output" or (*words, option.name) in known
                assert text == option.help or other, (words, option.name)


def test_help_fits_a_terminal() -> None:
    for words in ((), ("audit",), ("tally", "make")):
        seen = run(*words, "--help", env={"COLUMNS": "80"}).stdout
        assert seen == help_of(words) + "\n"
        assert max(map(len, seen.splitlines())) <= 80


def examples(text: str) -> list[str]:
    """Return the commands of a help text, each to the next or the end."""
    told = re.sub(r"\s+", " ", re.split(r"Examples?:", text, maxsplit=1)[1])
    told = told.split(" Options:")[0]
    return [f"dhkappa {part.strip(' ;')}" for part in told.split("dhkappa ")[1:]]


@pytest.mark.parametrize("words", [words for words, _ in ALL], ids=IDS)
def test_help_has_an_example_that_parses(words: tuple[str, ...]) -> None:
    text = help_of(words)
    found = examples(text)
    assert found
    for example in found:
        if words == ("completion",):
            assert 'eval "$(dhkappa completion bash)"' in text
            continue
        typed = shlex.split(example)[1:]
        assert words == tuple(typed[: len(words)])
        assert parse(typed)
