"""`warploom layout show` and `check`: a layout as somebody wrote it, and how it serves accesses."""

from __future__ import annotations

from functools import partial

import numpy as np

from warploom.cli.commands.layout import CheckLayout, ShowLayout
from warploom.cli.declare import STDOUT, Context
from warploom.cli.guard import Status, run
from warploom.cli.layout_check import check_lines, grid_lines, measured_lines
from warploom.cli.layout_input import known_export, readers
from warploom.cli.layout_registers import registers_shown
from warploom.cli.output import kept_free, write, write_records
from warploom.cli.say import echo
from warploom.emit.index_function import exported
from warploom.errors import ParseError, one_of
from warploom.layout.formats.fragment_text import is_registers
from warploom.layout.formats.function_name import function_name
from warploom.layout.formats.given import given_layout, row_major_addresses, sizes
from warploom.layout.language.evaluate import Numbers
from warploom.layout.language.ir import Layout
from warploom.layout.language.show import show as show_layout
from warploom.layout.patterns.named import ELEMENTS, element_of
from warploom.layout.solver.task import Task
from warploom.layout.wavefronts.picture import Compared, request_of
from warploom.pipeline.pictures import picture as draw
from warploom.report.picture import check_name


def show(asked: ShowLayout, context: Context) -> None:
    run(partial(_either, asked, context))


def _either(asked: ShowLayout, context: Context) -> Status:
    """Shows a layout of shared memory, or one of registers."""
    return registers_shown(asked, context) if is_registers(asked.layout) else _shown(asked)


def _shown(asked: ShowLayout) -> Status:
    drawn = None
    known_export(asked.emit, asked.name)
    if asked.picture is not None:
        check_name(asked.picture)
    with kept_free(asked.json_file, asked.picture, STDOUT if asked.emit else None):
        if asked.pattern is None and (asked.measured is not None or asked.picture is not None):
            raise ParseError("which accesses are meant?", advice="give --pattern")
        task = None if asked.pattern is None else _task_of(asked.pattern)
        found = _layout_for(task, asked.layout, asked.shape, asked.element)
        lines, record = check_lines(found, None)
        if task is not None:
            drawn = _in_use(asked, task, found, lines)
        for line in lines:
            echo(line)
        size, packed = _element_of(asked.element)
        if task is not None:
            size, packed = task.problem.element_bytes, task.problem.packed
        called = asked.name or function_name("place", show_layout(found))
        text = "" if asked.emit is None else exported(found, asked.emit, called, size, packed)
    write_records(asked.json_file, [record])
    if asked.emit is not None:
        write(STDOUT, text)
    if drawn is not None and asked.picture is not None:
        for file, content in draw(drawn).files(asked.picture).items():
            write(file, content)
    return Status.FOUND


def _in_use(asked: ShowLayout, task: Task, found: Layout, lines: list[str]) -> Compared | None:
    """How it serves one request, in lines that are added, and as a picture if one is wanted."""
    addresses = row_major_addresses(found, task.problem)
    lines += grid_lines(task, addresses, asked.access, asked.step)
    if asked.measured is not None:
        lines += measured_lines(task, addresses, asked.measured)
    return None if asked.picture is None else _compared(asked, task, addresses, lines)


def _compared(asked: ShowLayout, task: Task, addresses: Numbers, lines: list[str]) -> Compared:
    """One request in rows as they are, and in the layout."""
    plain = np.arange(task.problem.size, dtype=np.int64)
    pairs = (("rows as they are", plain), (asked.layout[:40], addresses))
    requests = tuple(request_of(task, at, asked.access, asked.step, name) for name, at in pairs)
    return Compared(asked.pattern or "", task, requests, tuple(lines))


def check(asked: CheckLayout, _context: Context) -> None:
    run(partial(_checked, asked))


def _checked(asked: CheckLayout) -> Status:
    with kept_free(asked.json_file):
        task = _task_of(asked.pattern)
        found = _layout_for(task, asked.layout)
        lines, record = check_lines(found, task)
        for line in lines:
            echo(line)
    write_records(asked.json_file, [record])
    return Status.FOUND if record["clean"] else Status.IMPOSSIBLE


def _layout_for(
    task: Task | None, text: str, shape: str | None = None, element: str | None = None
) -> Layout:
    """A layout as somebody wrote it; a pattern says shape and element where it does not."""
    if task is None:
        known = None if shape is None else sizes(shape)
        return given_layout(text, known, *_element_of(element))
    if shape is not None or element is not None:
        raise ParseError("the pattern says shape and element", advice="leave them out")
    return given_layout(text, task.problem.shape, task.problem.element_bytes, task.problem.packed)


def _task_of(text: str) -> Task:
    """The one problem that a text stands for."""
    found = readers([text], None)
    if len(found) > 1:
        raise ParseError(f"'{text}' stands for {len(found)} patterns", advice="name one of them")
    return Task(found[0][1]())


def _element_of(element: str | None) -> tuple[int | None, int]:
    """Bytes, and the elements that share them."""
    if element is None:
        return None, 1
    found = element_of(element)
    if found is None:
        raise ParseError(f"no element type '{element[:20]}'", advice=one_of(element, ELEMENTS))
    return found
