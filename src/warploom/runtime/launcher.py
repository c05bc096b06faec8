"""Launches of two addresses on a stream, in C: one call from Python, without ctypes.

A launch by ctypes costs more than the driver's own part of it. Where there is a C compiler, a few
lines of C become a function of Python; it needs no headers, as its few names are of the stable ABI.
Addresses and numbers of 32 bits lie in one buffer as the kernel has them, which the driver copies
at once; with other arguments it gets the table of their places.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

from warploom.errors import WarploomError
from warploom.native import kept_library, load_library
from warploom.options import cache_folder
from warploom.runtime.driver import Function, LaunchConfig, Sides, Table

Quick: TypeAlias = Callable[[int, int, int], int]  # x, y, stream → what the driver says

_END, _POINTER, _SIZE = 0, 1, 2  # what the driver calls the parts of a buffer
_FOREIGN: Any = ctypes.CFUNCTYPE(None).__bases__[0]  # what functions of libraries are
_FLAGS = ("-O2", "-shared", "-fPIC")
_TEXT = """\
typedef struct _object PyObject;
typedef unsigned long long u64;
extern u64 PyLong_AsUnsignedLongLong(PyObject *);
extern void *PyLong_AsVoidPtr(PyObject *);
extern PyObject *PyLong_FromLong(long);
extern PyObject *PyErr_Occurred(void);
extern PyObject *PyCFunction_NewEx(void *, PyObject *, PyObject *);

typedef struct {
  unsigned grid[3], block[3], shared;
  void *stream, *attributes;
  unsigned count;
} Config;
typedef struct {
  int (*enqueue)(const Config *, void *, void **, void **);
  void *function;
  void **table, **buffer;
  u64 *x, *y;
  long long x_begin, y_begin;
  Config config;
} Launch;

static PyObject *launch(PyObject *self, PyObject *const *args, long count) {
  Launch *l = PyLong_AsVoidPtr(self);
  if (count != 3) return PyLong_FromLong(1);
  const u64 x = PyLong_AsUnsignedLongLong(args[0]), y = PyLong_AsUnsignedLongLong(args[1]);
  const u64 stream = PyLong_AsUnsignedLongLong(args[2]);
  if ((x + 1 == 0 || y + 1 == 0 || stream + 1 == 0) && PyErr_Occurred()) return 0;
  *l->x = x + l->x_begin;
  *l->y = y + l->y_begin;
  l->config.stream = (void *)stream;
  return PyLong_FromLong(l->enqueue(&l->config, l->function, l->table, l->buffer));
}

static struct { const char *name; void *method; int flags; const char *doc; } method = {
  "launch", (void *)launch, 0x80, 0};

PyObject *bound(PyObject *address) { return PyCFunction_NewEx(&method, address, 0); }
"""


class _Launch(ctypes.Structure):
    _fields_ = (
        ("enqueue", ctypes.c_void_p),
        ("function", ctypes.c_void_p),
        ("table", ctypes.c_void_p),
        ("buffer", ctypes.c_void_p),
        ("x", ctypes.c_void_p),
        ("y", ctypes.c_void_p),
        ("x_begin", ctypes.c_longlong),
        ("y_begin", ctypes.c_longlong),
        ("config", LaunchConfig),
    )


@lru_cache(maxsize=1)
def _bound() -> Any:
    """What makes such functions; None where that cannot be."""
    shared = getattr(sys, "_is_gil_enabled", lambda: True)()  # one launch at a time
    if os.name != "posix" or sys.implementation.name != "cpython" or not shared:
        return None
    try:
        library = load_library(kept_library(_TEXT, _FLAGS, cache_folder()))
        made = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(("bound", library))
    except (WarploomError, AttributeError, OSError):
        return None
    return made


def quick(
    function: Function, sides: tuple[Sides, Sides], table: Table, x: int, y: int, begins: Any
) -> tuple[Quick, object] | None:
    """A launch of `sides` (grid, block) whose cells x and y of the table are addresses that begin
    so many bytes after those given, and what must live as long; None where there is no C compiler.
    It may be called by one thread at a time, which Python sees to."""
    made = _bound()
    enqueue: Any = function.driver.library.cuLaunchKernelEx
    if made is None or not isinstance(enqueue, _FOREIGN):
        return None
    buffer = _Buffer.of(table)
    if buffer is None:
        places = [ctypes.addressof(table.memory), 0]
        places += [ctypes.addressof(table.cells[each]) for each in (x, y)]
    else:
        first = ctypes.addressof(buffer.memory)
        places = [0, ctypes.addressof(buffer.asked)]
        places += [first + buffer.offsets[each] for each in (x, y)]
    held = _Launch(ctypes.cast(enqueue, ctypes.c_void_p).value, function.address, *places, *begins)
    for name, three in zip(("grid", "block"), sides, strict=True):
        setattr(held.config, name, (ctypes.c_uint * 3)(*three))
    held.config.shared_bytes = function.shared_bytes
    return made(ctypes.addressof(held)), (held, table, buffer, function)


@dataclass(frozen=True, slots=True)
class _Buffer:
    """Arguments as they lie in a kernel's memory, where each begins, and how the driver is told."""

    memory: Any
    offsets: tuple[int, ...]
    size: Any
    asked: Any

    @classmethod
    def of(cls, table: Table) -> _Buffer | None:
        """None if an argument is no address and no number of 32 bits."""
        sizes = [ctypes.sizeof(cell) for cell in table.cells]
        if any(
            size != 4 and not isinstance(cell, ctypes.c_uint64)
            for size, cell in zip(sizes, table.cells, strict=True)
        ):
            return None
        offsets, end = [], 0
        for size in sizes:
            offsets.append(-(-end // size) * size)
            end = offsets[-1] + size
        memory, size_of_it = ctypes.create_string_buffer(max(1, end)), ctypes.c_size_t(end)
        for cell, offset, size in zip(table.cells, offsets, sizes, strict=True):
            ctypes.memmove(ctypes.addressof(memory) + offset, ctypes.addressof(cell), size)
        told = (_POINTER, ctypes.addressof(memory), _SIZE, ctypes.addressof(size_of_it), _END)
        return cls(memory, tuple(offsets), size_of_it, (ctypes.c_void_p * 5)(*told))
