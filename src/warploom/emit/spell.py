"""Names of a kernel as a language can have them: those that it reserves get an underscore."""

from __future__ import annotations

from warploom.emit.dialect import Language
from warploom.emit.helper import is_helper_of
from warploom.emit.reserved import is_reserved, is_reserved_function
from warploom.kernel.function import function_of, with_function_name
from warploom.kernel.ir import BUILT_IN, Kernel
from warploom.kernel.names import Fresh, names_of, renamed


def spelled(kernel: Kernel, language: Language) -> Kernel:
    """The kernel with other names where the language keeps one for itself, or a helper of the text
    has it; no two become equal."""
    names = names_of(kernel)
    fresh = Fresh(names)
    new = {}
    if is_reserved_function(kernel.name, language):
        new[kernel.name] = _free(f"{kernel.name}_kernel", language, fresh)
    owner = new.get(kernel.name, kernel.name)
    for name in sorted(names - BUILT_IN - {kernel.name}):
        if is_reserved(name, language) or is_helper_of(owner, name):
            new[name] = _free(name, language, fresh)
    return renamed(kernel, new)


def function_name(kernel: Kernel, language: Language) -> str:
    """The name under which the text of a kernel defines it."""
    return spelled(kernel, language).name


def spelled_function(kernel: Kernel, language: Language) -> Kernel:
    """`spelled` for a kernel with a function, whose name also differs from all in the kernel."""
    kernel = spelled(kernel, language)
    name, names = function_of(kernel).name, names_of(kernel)
    if name in names or is_reserved_function(name, language):
        name = _free(f"{name}_function", language, Fresh(names))
        kernel = with_function_name(kernel, name)
    fresh = Fresh(names)
    called = sorted(each for each in names if is_helper_of(name, each))
    return renamed(kernel, {each: _free(each, language, fresh) for each in called})


def _free(name: str, language: Language, fresh: Fresh) -> str:
    """A name like this one that the language does not reserve."""
    like = "_".join(word for word in name.split("_") if word) or "name"
    plain = f"{like}_"
    if like[0].isdigit() or is_reserved(plain, language) or not fresh.is_free(plain):
        return fresh.name(f"u_{like}")  # nothing that is reserved begins so
    return fresh.name(plain)
