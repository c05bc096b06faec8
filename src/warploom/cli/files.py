"""Files that a command writes: checked before the work, replaced whole after it."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from warploom.cli.declare import STDOUT
from warploom.errors import ParseError


@contextmanager
def replacing(file: Path) -> Iterator[BinaryIO]:
    """A file to write, which takes the place of what was there when all of it is written. Pipes
    and devices, and files in folders that take no other, are written as they are."""
    try:
        if not _is_replaced(file):
            with file.open("wb") as opened:
                yield opened
            return
        from secrets import token_hex  # here, not at the top: most commands write no file

        target = Path(os.path.realpath(file))  # a link stays one
        beside = target.with_name(f".warploom-{token_hex(8)}")
        try:
            with beside.open("xb") as opened:
                _as_before(target, opened)
                yield opened
            beside.replace(target)
        finally:
            beside.unlink(missing_ok=True)
    except OSError as error:
        raise ParseError(f"cannot write '{file}': {error.strerror or error}") from None


def _is_replaced(file: Path) -> bool:
    """Whether another file may take its place: not that of a device, or of a descriptor that a
    shell opened (`/dev/stdout`)."""
    if not file.exists():
        return True
    target = Path(os.path.realpath(file))
    opened = {"/dev", "/proc"} & {str(each) for each in (*file.absolute().parents, *target.parents)}
    regular = stat.S_ISREG(file.stat().st_mode)
    return regular and not opened and os.access(target.parent, os.W_OK)


def _as_before(file: Path, opened: BinaryIO) -> None:
    """The mode, and if we may give it away the owner, of the file that is replaced."""
    with suppress(FileNotFoundError, PermissionError):
        before = file.stat()
        os.fchmod(opened.fileno(), stat.S_IMODE(before.st_mode))
        os.fchown(opened.fileno(), before.st_uid, before.st_gid)


def check_writable(file: Path) -> None:
    """By trying: a folder may be on a file system that is only read, or that makes no files."""
    try:
        if file.is_dir():
            raise ParseError(f"cannot write '{file}': it is a folder")
        target = Path(os.path.realpath(file))
        if not file.exists() and not target.parent.is_dir():
            raise ParseError(f"cannot write '{file}': there is no folder '{target.parent}'")
        if file.exists() and not os.access(file, os.W_OK):
            raise ParseError(f"cannot write '{file}': no permission")
        if _is_replaced(file):
            from tempfile import TemporaryFile  # likewise

            with TemporaryFile(dir=target.parent):
                pass
    except OSError as error:
        raise ParseError(f"cannot write '{file}': {error.strerror or error}") from None


def check_apart(files: Sequence[Path]) -> None:
    taken: dict[str, Path] = {}
    for file in files:
        place = "-" if file == STDOUT else os.path.realpath(file)
        if place in taken and place == "-":
            raise ParseError(
                "the text and the records both go to standard output",
                advice="give one of them a file",
            )
        if place in taken and _is_replaced(file):
            raise ParseError(f"two outputs go to '{file}'", advice="give one of them another name")
        taken[place] = file
