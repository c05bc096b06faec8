"""docs/map.md is the tree: what it names is there, and what is there it names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).resolve().parents[1]
ROOT = HERE / "src" / "warploom"
MAP = (HERE / "docs" / "map.md").read_text()

Files = set[str]


def tree(text: str) -> Iterator[str]:
    """The paths of the tree: a name begins its line, indented in its folder."""
    above: list[tuple[int, str]] = []
    for line in text.split("```")[1].splitlines():
        found = re.match(r"( *)([\w./*]+(?:/|\.py))(?= |$)", line)
        if found is None or len(found[1]) > 4:  # further right are the explanations
            continue
        depth, name = len(found[1]), found[2]
        above = [(d, n) for d, n in above if d < depth]
        yield "".join(n for _, n in above) + name
        above.append((depth, name))


def rooms(text: str) -> dict[str, list[str]]:
    """Of every section `Inside ROOM` the files of its table, as paths in that room.

    A name without a folder is in the folder of the name before it in its row.
    """
    found: dict[str, list[str]] = {}
    for room, body in re.findall(
        r"^## Inside (\S+)\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL
    ):
        found[room] = []
        for row in re.findall(r"^\| (`[^|]*) \|", body, re.MULTILINE):
            folder = ""
            for name in re.findall(r"`([^`]+)`", row):
                folder = name[: name.rfind("/") + 1] or folder
                found[room].append(folder + name.removeprefix(folder))
    return found


def modules(folder: Path) -> Files:
    """The files of a folder and below it, less those of rooms with a section of their own."""
    own = [ROOT / room for room in rooms(MAP) if (ROOT / room).is_relative_to(folder)]
    inner = [room for room in own if room != folder]
    return {
        str(path.relative_to(folder))
        for path in folder.rglob("*.py")
        if path.name != "__init__.py" and not any(path.is_relative_to(room) for room in inner)
    }


def test_everything_in_the_tree_exists() -> None:
    named = list(tree(MAP))
    assert {"src/warploom/errors.py", "src/warploom/sketch/term/", "docs/"} <= set(named)
    assert [name for name in named if not (HERE / name).exists()] == []


def test_every_folder_and_file_at_the_top_is_in_the_tree() -> None:
    named = set(tree(MAP))
    for folder in ("", "sketch/"):
        there = [path for path in (ROOT / folder).iterdir() if not path.name.startswith("_")]
        wanted = {f"src/warploom/{folder}{p.name}/" for p in there if (p / "__init__.py").exists()}
        wanted |= {f"src/warploom/{folder}{p.name}" for p in there if p.suffix == ".py"}
        assert wanted - named == set()


def test_the_rooms_hold_what_their_tables_say() -> None:
    said = rooms(MAP)
    assert len(said) >= 15
    for room, files in said.items():
        assert sorted(files) == sorted(modules(ROOT / room)), room


def test_every_package_has_a_table() -> None:
    packages = {path.parent for path in ROOT.rglob("__init__.py")} - {ROOT, ROOT / "sketch"}
    covered = {ROOT / room for room in rooms(MAP)}
    assert [p for p in packages if p not in covered and p.parent not in covered] == []


def test_files_named_elsewhere_exist() -> None:
    paths = set(re.findall(r"`((?:\w+/)+\w+\.py)`", MAP))
    places = (HERE, ROOT, ROOT / "sketch", *(ROOT / room for room in rooms(MAP)))
    assert [path for path in paths if not any((place / path).exists() for place in places)] == []


def test_what_decides_is_in_the_file_that_is_named() -> None:
    table = MAP.split("## Where to look")[1].split("\n## ")[0]
    named = re.findall(r"`((?:\w+/)+\w+\.py)`(?:[^`|]*\(`(\w+)`\))?", table)
    assert len(named) > 25
    for path, name in named:
        text = (ROOT / path).read_text()
        assert re.search(rf"\b{name}\b\W" if name else "", text), (path, name)


def test_paths_of_the_tree_and_of_tables_are_read() -> None:
    drawn = "```\nsrc/x/\n  a.py    words\n  b/      b/ and c.py\n    c/    more\n  d.py e\n```"
    assert list(tree(drawn)) == ["src/x/", "src/x/a.py", "src/x/b/", "src/x/b/c/", "src/x/d.py"]
    table = (
        "## Inside r\n\n| file | to |\n|---|---|\n| `a.py`, `s/b.py`, `c.py` | `no.py` |\n## Next\n"
    )
    assert rooms(table) == {"r": ["a.py", "s/b.py", "s/c.py"]}
