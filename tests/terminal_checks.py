"""What holds for everything that the terminal shows."""

from unicodedata import combining, east_asian_width

HOSTILE = [
    "\x1b[31mred\x1b[0m",
    "\x1b]0;title\x07",
    "two\nlines",
    "tab\there",
    "carriage\rreturn",
    "😀 face",
    "👩‍👩‍👧 three",
    "漢字かな交じり文の長い名前をここに書く",
    "\u202eabc\u202c",
    "\u2066iso\u2069",
    "[red]markup[/red]",
    "[/]",
    "[bold",
    ":smile:",
    "\u0301\u0301accent",
    "a" * 200,
    "<b>",
    "\0nul",
]


def cells(line: str) -> int:
    """Return the width of a line, from the tables of Unicode."""
    return sum(0 if combining(sign) else 2 if east_asian_width(sign) in "WF" else 1 for sign in line)


def check_lines(text: str, width: int = 80) -> list[str]:
    """Check that there are no control characters, no trailing blanks and no line that is too wide, except commands."""
    lines = text.splitlines()
    assert lines
    assert text == "\n".join(lines) + "\n"  # no line breaks from the data
    for line in lines:
        assert line == line.rstrip()
        assert all(sign.isprintable() for sign in line), ascii(line)
        assert cells(line) <= width or line.startswith("  dhkappa "), line  # a command can be copied in one piece
    assert lines[0]
    assert lines[-1]
    assert "nan" not in text
    return lines


def check_columns(text: str) -> None:
    """Check that the last column of each table is aligned."""
    for block in text.split("\n\n"):
        head, *lines = block.splitlines()
        if head == "Labelers":
            ends = {cells(line) for line in lines if line.endswith((" items", " coverage", "%"))}
            assert len(ends) == 1, block
        starts = [
            line for line in lines if line.startswith(("category  ", "annotator  ")) and line.endswith(("items", "CI"))
        ]
        for start in starts:
            assert len({cells(line) for line in lines[lines.index(start) :]}) == 1, block
