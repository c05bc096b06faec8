"""What a tool takes: each field with its JSON Schema, and how a value becomes words of a command.

A value that does not fit its schema is refused here, with the field's name: whether a client has
looked at the schema is not known.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from warploom.agents.paths import Folder, RefusedError

Schema = dict[str, Any]

MOST_TEXT, MOST_ITEMS = 2000, 64
RUN = "--run"  # a script may be run
KERNELS = (".cu", ".cuh", ".ptx")
LAUNCHES = (".npz", ".json")
# A path has a folder or an ending; a name of ours has neither, nor begins as an option.
_NAME = re.compile(r"[A-Za-z_][\w:@,-]*", re.ASCII)
_WORD = re.compile(r"^[A-Za-z][\w-]{0,60}$", re.ASCII)
_SIZE = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_ARRAY_FILE = re.compile(r"(?P<before>[^@]*)@(?P<file>[^@:]+\.np[yz])(?P<name>:[\w.-]+)?")


@dataclass(slots=True)
class Asked:
    """A call as it is read: where files are, and whether one of those that it names says more than
    data: Python is run, CUDA includes, a record names other files."""

    folder: Folder
    says_more: bool = False
    files: list[str] = field(default_factory=list)  # that it names, relative to the folder

    def file(self, text: str, endings: tuple[str, ...]) -> str:
        """A file as a word of a command line."""
        word = self.folder.file(text, endings)
        self.files.append(Path(word).as_posix())
        return word

    def function(self, text: str) -> str:
        """A function in a file, as FILE.py::NAME."""
        word = self.folder.function(text)
        self.files.append(Path(word.partition("::")[0]).as_posix())
        return word


Read = Callable[[Any, Asked], list[str]]


@dataclass(frozen=True, slots=True)
class Field:
    """`flag` is empty for a word that stands for itself."""

    name: str
    flag: str
    schema: Schema
    read: Read = field(repr=False)
    about: str
    required: bool = False

    def words(self, value: Any, asked: Asked) -> list[str]:
        """The words of a command line for a value of this field."""
        found = self.read(value, asked)
        return [f"{self.flag}={each}" if self.flag else each for each in found]


def not_right(name: str, what: str) -> RefusedError:
    return RefusedError(f"'{name}' is to be {what}")


# -- plain values ----------------------------------------------------------------------------------


def text(name: str, flag: str, about: str, most: int = MOST_TEXT) -> Field:
    def read(value: Any, asked: Asked) -> list[str]:
        del asked
        return [_line(name, value, most)]

    return Field(name, flag, {"type": "string", "maxLength": most}, read, about)


def word(name: str, flag: str, about: str) -> Field:
    """A name of ours, never a file."""

    def read(value: Any, asked: Asked) -> list[str]:
        del asked
        if not isinstance(value, str) or not _WORD.fullmatch(value):
            raise not_right(name, "a name")
        return [value]

    return Field(name, flag, {"type": "string", "pattern": _WORD.pattern}, read, about)


def texts(name: str, flag: str, about: str) -> Field:
    def read(value: Any, asked: Asked) -> list[str]:
        del asked
        return [_line(name, each, MOST_TEXT) for each in _items(name, value)]

    return Field(name, flag, _list_of({"type": "string", "maxLength": MOST_TEXT}), read, about)


def choice(name: str, flag: str, known: Sequence[str], about: str) -> Field:
    def read(value: Any, asked: Asked) -> list[str]:
        del asked
        if value not in known:
            raise not_right(name, f"one of {', '.join(known)}")
        return [value]

    return Field(name, flag, {"type": "string", "enum": list(known)}, read, about)


def choices(name: str, flag: str, known: Sequence[str], about: str) -> Field:
    def read(value: Any, asked: Asked) -> list[str]:
        del asked
        items = _items(name, value)
        if not items or any(each not in known for each in items):
            raise not_right(name, f"a list of {', '.join(known)}")
        return [",".join(items)]

    return Field(name, flag, _list_of({"type": "string", "enum": list(known)}), read, about)


def whole(name: str, flag: str, about: str) -> Field:
    def read(value: Any, asked: Asked) -> list[str]:
        del asked
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 1 << 63:
            raise not_right(name, "a whole number, 0 or more")
        return [str(value)]

    return Field(name, flag, {"type": "integer", "minimum": 0}, read, about)


def switch(name: str, flag: str, about: str, file: str = "") -> Field:
    """A flag; with `file` an option that writes this file of the call."""

    def read(value: Any, asked: Asked) -> list[str]:
        del asked
        if not isinstance(value, bool):
            raise not_right(name, "true or false")
        return [f"{flag}={file}" if file else flag] if value else []

    return Field(name, "", {"type": "boolean"}, read, about)


def sizes(name: str, flag: str, about: str, several: bool = False) -> Field:
    """`{"n": 64}`, and where there may be several `{"n": [37, 64]}`; words where values have."""
    one: Schema = {"type": ["integer", "string"]}
    schema: Schema = {"type": "object", "additionalProperties": one, "maxProperties": MOST_ITEMS}
    if several:
        many = {"type": "array", "items": {"type": "integer"}, "maxItems": MOST_ITEMS}
        schema["additionalProperties"] = {"anyOf": [{"type": "integer"}, many]}

    def read(value: Any, asked: Asked) -> list[str]:
        del asked
        if not isinstance(value, dict) or len(value) > MOST_ITEMS:
            raise not_right(name, 'an object such as {"n": 64}')
        return [
            f"{_size_name(name, key)}={_size(name, each, several)}" for key, each in value.items()
        ]

    return Field(name, flag, schema, read, about)


def _size_name(name: str, key: str) -> str:
    if not _SIZE.fullmatch(key):
        raise not_right(name, "an object whose keys are names")
    return key


def _size(name: str, value: Any, several: bool) -> str:
    listed = _items(name, value) if several and isinstance(value, list) else [value]
    good = all(
        isinstance(each, int) and not isinstance(each, bool) and abs(each) < 1 << 63
        for each in listed
    )
    if good and listed:
        return ",".join(str(each) for each in listed)
    if not several and isinstance(value, str) and _SIZE.fullmatch(value):
        return value
    raise not_right(name, "an object of whole numbers")


# -- values that name files ------------------------------------------------------------------------


def kernel_file(name: str, about: str, and_more: tuple[str, ...] = ()) -> Field:
    """CUDA or PTX; with `::` among what else it may be, FILE.py::NAME of such a text, and a Python
    file is a candidate, not a script that is run."""
    endings = (*KERNELS, *(each for each in and_more if each != "::"))

    def read(value: Any, asked: Asked) -> list[str]:
        word = _line(name, value, MOST_TEXT)
        asked.says_more |= not word.endswith(".ptx")
        if "::" in and_more and "::" in word:
            return [asked.function(word)]
        found = asked.file(word, endings)
        return [found, RUN] if found.endswith(".py") and "::" not in and_more else [found]

    return Field(name, "", {"type": "string", "maxLength": MOST_TEXT}, read, about, required=True)


def function(name: str, flag: str, about: str) -> Field:
    def read(value: Any, asked: Asked) -> list[str]:
        asked.says_more = True
        return [asked.function(_line(name, value, MOST_TEXT))]

    schema = {"type": "string", "pattern": r"^.+\.py::\w+$", "maxLength": MOST_TEXT}
    return Field(name, flag, schema, read, about)


def text_that_runs(name: str, flag: str, endings: tuple[str, ...], about: str) -> Field:
    """A file in or with which Python is run."""

    def read(value: Any, asked: Asked) -> list[str]:
        asked.says_more = True
        return [asked.file(_line(name, value, MOST_TEXT), endings)]

    return Field(name, flag, {"type": "string", "maxLength": MOST_TEXT}, read, about)


def file_or_name(name: str, endings: tuple[str, ...], about: str, python: bool = False) -> Field:
    """A file of the folder, a name of ours, or FILE.py::NAME."""

    def read(value: Any, asked: Asked) -> list[str]:
        word = _line(name, value, MOST_TEXT)
        if python and ".py::" in word:
            asked.says_more = True
            return [asked.function(word)]
        if _NAME.fullmatch(word) and not asked.folder.holds(word):
            return [word]
        if not endings:
            raise not_right(name, "a known name or FILE.py::NAME")
        return [asked.file(word, endings)]

    return Field(name, "", {"type": "string", "maxLength": MOST_TEXT}, read, about, required=True)


def launch(name: str, flag: str, about: str) -> Field:
    def read(value: Any, asked: Asked) -> list[str]:
        asked.says_more = True
        return [asked.file(_line(name, value, MOST_TEXT), LAUNCHES)]

    return Field(name, flag, {"type": "string", "maxLength": MOST_TEXT}, read, about)


def arrays(name: str, flag: str, about: str) -> Field:
    """Arguments of a launch, of which `@FILE.npy` and `@FILE.npz:NAME` are in the folder."""

    def read(value: Any, asked: Asked) -> list[str]:
        return [_array(name, each, asked) for each in _items(name, value)]

    return Field(name, flag, _list_of({"type": "string", "maxLength": MOST_TEXT}), read, about)


def _array(name: str, value: Any, asked: Asked) -> str:
    word = _line(name, value, MOST_TEXT)
    if "@" not in word:
        return word
    found = _ARRAY_FILE.fullmatch(word)
    if found is None:
        raise not_right(name, "f32[64]=random, i32=7, @FILE.npy or @FILE.npz:NAME")
    file = asked.file(found["file"], (".npy", ".npz"))
    return f"{found['before']}@{file}{found['name'] or ''}"


# -- what they share -------------------------------------------------------------------------------


def _list_of(items: Schema) -> Schema:
    return {"type": "array", "items": items, "maxItems": MOST_ITEMS}


def _items(name: str, value: Any) -> list[Any]:
    if not isinstance(value, list) or len(value) > MOST_ITEMS:
        raise not_right(name, f"a list of at most {MOST_ITEMS} items")
    return value


def _line(name: str, value: Any, most: int) -> str:
    if not isinstance(value, str) or len(value) > most or "\0" in value:
        raise not_right(name, f"a text of at most {most} characters")
    return value
