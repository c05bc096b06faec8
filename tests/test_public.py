"""What `import warploom` promises: a small surface, and nothing but NumPy behind it."""

from __future__ import annotations

import re
import subprocess
import sys

import warploom

COST = """
import time, numpy
started = time.process_time()
import warploom
print(time.process_time() - started)
"""


def test_the_public_surface_is_small_and_all_there() -> None:
    names = [name for name in dir(warploom) if not name.startswith("_")]
    assert len(names) <= 24
    sketching = {"Sketch", "warp_sketch", "spec", "load_text", "load_file"}
    solving = {"synthesize", "solve", "transfer", "verify"}
    running = {"compile", "load", "kernels", "emulate", "insert_shuffles"}
    assert sketching | solving | running <= set(names)
    for name in names:
        found = getattr(warploom, name)
        assert found.__doc__, f"{name} says nothing about itself"
    assert not hasattr(warploom, "no_such_name")


EVERY_MODULE = """
import importlib, pkgutil, warploom
for found in pkgutil.walk_packages(warploom.__path__, "warploom."):
    if not found.name.endswith("__main__"):
        importlib.import_module(found.name)
for name in warploom.__all__:
    first, second = getattr(warploom, name), getattr(warploom, name)
    assert first is second, name
    module, attribute = warploom._PUBLIC.get(name, ("", name))
    wanted = importlib.import_module(module) if module and attribute is None else (
        getattr(importlib.import_module(module), attribute) if module else warploom.__version__)
    assert first is wanted, f"{name} is a module once it was imported"
print(len(warploom.__all__))
"""


def test_no_public_name_is_that_of_a_module() -> None:
    assert int(python("-c", EVERY_MODULE).stdout) > 10


def python(*args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *args], capture_output=True, text=True, check=True, timeout=900
    )


def test_the_import_needs_nothing_but_numpy() -> None:
    told = python("-X", "importtime", "-c", "import warploom").stderr
    modules = re.findall(r"\|\s+(\S+)$", told, re.MULTILINE)
    tops = {name.split(".")[0] for name in modules} - {"package"}
    assert "warploom" in tops
    # A site's own start-up files (editable installs, say) come before us and are not ours.
    own = {name for name in tops if not name.startswith(("__editable__", "_distutils_hack"))}
    foreign = own - set(sys.stdlib_module_names) - {"numpy", "warploom", "sitecustomize"}
    assert {name for name in foreign if not name.startswith("_")} == set()


def test_the_import_is_cheap() -> None:
    cost = min(float(python("-c", COST).stdout) for _ in range(3))
    assert cost < 0.1


def test_the_pytest_plugin_imports_nothing_until_it_is_used() -> None:
    """pytest loads it for all tests of whoever has the package installed."""
    told = python("-c", "import sys, warploom.pytest_plugin; print(*sys.modules)").stdout.split()
    own = {name for name in told if name.startswith("warploom")}
    assert own == {"warploom", "warploom.began", "warploom.pictured", "warploom.pytest_plugin"}


def test_the_whole_core_needs_nothing_but_numpy() -> None:
    """Also when it is used: rich and z3 stay out."""
    told = python(
        "-c",
        "import sys, warploom\n"
        "s = warploom.Sketch('t'); x = s.input('x', 4)\n"
        "s.hole('rots', x, main=0, second=0, out=0); s.goal([1, 2, 3, 0])\n"
        "assert warploom.synthesize(s.program()).fills.count == 1\n"
        "print(sorted({m.split('.')[0] for m in sys.modules} & {'rich', 'z3', 'cuda'}))",
    )
    assert told.stdout.strip() == "[]"
