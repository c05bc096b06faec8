"""Launches of two addresses on a stream, in C: one call from Python, without ctypes.

A launch by ctypes costs more than the driver's own part of it. Where there is a C compiler, a few
lines of C become a function of Python; it needs no headers, as its few names are of the stable ABI.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeAlias

from warploom.errors import WarploomError
from warploom.native import kept_library, load_library
from warploom.options import cache_folder
from warploom.runtime.driver import Function, LaunchConfig, Sides, Table

Quick: TypeAlias = Callable[[int, int, int], int]  # x, y, stream → what the driver says

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
  void **table;
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
  return PyLong_FromLong(l->enqueue(&l->config, l->function, l->table, 0));
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
    held = _Launch(
        ctypes.cast(enqueue, ctypes.c_void_p).value,
        function.address,
        ctypes.addressof(table.memory),
        ctypes.addressof(table.cells[x]),
        ctypes.addressof(table.cells[y]),
        *begins,
    )
    for name, three in zip(("grid", "block"), sides, strict=True):
        setattr(held.config, name, (ctypes.c_uint * 3)(*three))
    held.config.shared_bytes = function.shared_bytes
    return made(ctypes.addressof(held)), (held, table, function)
