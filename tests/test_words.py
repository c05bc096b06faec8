"""README and docs are written in plain English: short sentences, no words of our own.

What is read is the prose of a page: paragraphs, headings and list items, without code blocks,
tables, HTML and pictures. A sentence ends at `.`, `!`, `?` before a space and what may begin one
(a capital, a digit, code), and where its paragraph, heading or list item ends; `:` and `;` end
none. A word stands between spaces and has a letter or a digit. A piece of inline code is one word,
whatever is in it; a link counts as its text. docs/glossary.md names the words that are left out.

The help of commands is held to the same. Its lists (what an argument may be, exit statuses) count
line by line; examples and names of the catalogue do not count.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.test_glossary import DEALS, WORDS

from warploom.cli.app import command_named
from warploom.cli.declare import Command, Group
from warploom.cli.reference import all_commands
from warploom.cli.start import COMMANDS, overview
from warploom.cli.usage import AS_IT_IS
from warploom.cli.usage import paragraphs as help_paragraphs

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
MOST = 30  # words in a sentence

CODE = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)
ITEM = re.compile(r"^(?:[-*]|\d+\.) ")
END = re.compile(r"(?<=[.!?])[\"”)*_]*\s+(?=[\"“(*_\[]*[A-Z`\d])")
# What stands in the glossary with the word to use instead; tests/test_glossary.py has more.
BANNED = re.compile(
    r"\bproducts? of matrices\b|\bplanes of\b|\bhalves\b(?= and (?:floats|singles))|\bin halves\b"
    r"|\bsingles\b|\btexts of others\b|\blanes (?:that )?(?:part|come together)\b"
    r"|\bnobody (?:wrote|gave|stored)\b|\bturns? of\b|\bdealt out\b|\bstores? ahead\b",
    re.IGNORECASE,
)


def paragraphs(text: str) -> list[tuple[int, str]]:
    """Each paragraph, heading and list item of prose, with the number of its first line."""
    text = CODE.sub(lambda block: "\n" * block[0].count("\n"), text)
    found: list[tuple[int, str]] = []
    goes_on = False
    for number, line in enumerate(text.splitlines(), 1):
        said = line.strip()
        if not said or said.startswith(("|", "<", "![")):
            goes_on = False
        elif said.startswith("#"):
            found.append((number, said.lstrip("# ")))
            goes_on = False
        elif goes_on and not ITEM.match(said):
            found[-1] = found[-1][0], f"{found[-1][1]} {said}"
        else:
            found.append((number, ITEM.sub("", said, count=1)))
            goes_on = True
    return found


def sentences(paragraph: str) -> list[str]:
    coded = re.sub(r"``.+?``|`[^`]*`", "`code`", paragraph)
    return END.split(re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", coded))


def words(sentence: str) -> int:
    return sum(bool(re.search(r"\w", each)) for each in sentence.split())


def long_ones(text: str) -> list[tuple[int, int, str]]:
    """Sentences with too many words: the line of their paragraph, how many, and the sentence."""
    return [
        (number, words(each), each)
        for number, paragraph in paragraphs(text)
        for each in sentences(paragraph)
        if words(each) > MOST
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_no_sentence_is_long(page: Path) -> None:
    found = [f"{page.name}:{n}: {m} words: {said}" for n, m, said in long_ones(page.read_text())]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_no_page_has_words_of_our_own(page: Path) -> None:
    if page.stem != "glossary":
        assert BANNED.findall(CODE.sub("", page.read_text())) == []


# -- help ------------------------------------------------------------------------------------------


def said_by(asked: Command | Group) -> Iterator[str]:
    """What people read in the help of a command: paragraphs, lines of lists, what options do."""
    for each in help_paragraphs(asked.help):
        if not each.startswith(AS_IT_IS):
            yield " ".join(each.split())
        elif not re.match(r"\s*(?:Examples?|Names):", each.removeprefix(AS_IT_IS)):
            yield from _listed(each.removeprefix(AS_IT_IS))
    if isinstance(asked, Command):
        yield from (each.declared.help for each in asked.parameters if each.declared.help)


def _listed(block: str) -> Iterator[str]:
    """The entries of a list that is not wrapped; a line that is indented further goes on."""
    item = ""
    for line in block.strip("\n").splitlines():
        if item and line.startswith(" " * 8):
            item = f"{item} {line.strip()}"
            continue
        yield from [item] * bool(item)
        item = line.strip()
    yield item


HELP = {
    "warploom": overview().splitlines(),
    **{prog: list(said_by(command)) for prog, command in all_commands()},
    **{
        f"warploom {name}": list(said_by(found))
        for name in COMMANDS
        if isinstance(found := command_named(name), Group)
    },
}


@pytest.mark.parametrize("prog", HELP)
def test_help_has_short_sentences_and_no_words_of_our_own(prog: str) -> None:
    long = [each for text in HELP[prog] for each in sentences(text) if words(each) > MOST]
    assert long == []
    for pattern in (BANNED, WORDS, DEALS):
        assert [each for each in HELP[prog] if pattern.search(each)] == []


def test_a_list_of_a_help_counts_by_entry() -> None:
    entries = list(_listed("\n--tune   measures;\n         it keeps times\n--time   measures once"))
    assert entries == ["--tune   measures; it keeps times", "--time   measures once"]


def test_every_option_of_a_command_is_a_sentence() -> None:
    for prog, command in all_commands():
        for each in command.parameters:
            assert not each.flags or re.fullmatch(r"[A-Z].*[.]", each.declared.help), (prog, each)


# -- errors ----------------------------------------------------------------------------------------

SOURCES = sorted((ROOT / "src" / "warploom").rglob("*.py"))


def texts_of_errors(source: str) -> Iterator[str]:
    """The message and the advice of every error that is made: what is computed counts a word."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call):
            name = getattr(node.func, "id", "")
            advice = [each.value for each in node.keywords if each.arg == "advice"]
            for each in [*node.args[: name.endswith("Error")], *advice]:
                yield from _said(each)


def _said(text: ast.expr) -> Iterator[str]:
    match text:
        case ast.Constant(str(value)):
            yield value
        case ast.JoinedStr(parts):
            yield "".join(str(each.value) if isinstance(each, ast.Constant) else "X"
                          for each in parts)  # fmt: skip
        case ast.IfExp():
            yield from (*_said(text.body), *_said(text.orelse))


@pytest.mark.sampled(60)
@pytest.mark.parametrize("file", SOURCES, ids=lambda file: file.stem)
def test_errors_have_short_sentences_and_no_words_of_our_own(file: Path) -> None:
    said = list(texts_of_errors(file.read_text()))
    assert [each for text in said for each in sentences(text) if words(each) > MOST] == []
    assert [each for each in said if BANNED.search(each)] == []


def test_what_is_said_by_errors() -> None:
    source = "raise CheckError(f'no {kind} here', span, advice='use a' if x else f'use {y}')"
    assert {*texts_of_errors(source)} == {"no X here", "use a", "use X"}


def test_the_readme_has_the_words_that_people_search_for() -> None:
    readme = (ROOT / "README.md").read_text().lower()
    for word in ("gemm", "bank conflict", "sanitizer", "bf16", "deadlock", "race", "aos", "triton"):
        assert word in readme, word


def test_what_is_counted() -> None:
    long = "word " * 30
    assert long_ones(f"One `a b c` and [two words](x/y.md#z) {'word ' * 24}end.") == []
    assert [
        n for n, *_ in long_ones(f"# Title\n\nShort.\n\n- An item, {long}\n  that goes on.")
    ] == [5]
    assert long_ones(f"```\n{long}{long}\n```\n\n| {long}{long}|\n\n![{long}](x.png)\n") == []
    assert long_ones(f"{long.strip()}. {long.strip().capitalize()}.\n{long}") != []
    assert (
        len(sentences("First (a pair, e.g. this). Second! `code` third? 4 is next; and so on: x"))
        == 4
    )


def test_what_is_banned() -> None:
    for text in ("a product of matrices", "in every turn of a loop", "memory that nobody wrote"):
        assert BANNED.search(text), text
    for text in ("it turns an index into code", "the two halves of a tile", "a plane"):
        assert not BANNED.search(text), text
