"""What `triton.autotune` and `triton.heuristics` add to the settings of a launch.

Nothing is timed here, so a launch names the configuration that it wants, by as many of its settings
as tell it from the others:

    emulate(tuned)[grid](x, y, n, BLOCK=64, num_warps=4)
    emulate(tuned)[grid](x, y, n, config=0)               # by its number in the list
    emulate(tuned)[grid](x, y, n, config={"BLOCK": 64})   # by settings
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from warploom.errors import DeviceError, UnsupportedError
from warploom.without_gpu.arrays import memory_of

MOST_LISTED = 12


def is_function(kernel: Any) -> bool:
    """Whether it is the function itself, with nothing around it that chooses settings."""
    return hasattr(kernel, "params") and hasattr(kernel, "arg_names")


def function_of(kernel: Any) -> Any:
    """The function under all that chooses settings for it."""
    inner = kernel
    while not is_function(inner):
        if not (hasattr(inner, "fn") and (hasattr(inner, "configs") or hasattr(inner, "values"))):
            raise UnsupportedError(f"a {type(inner).__name__} of Triton cannot be emulated")
        inner = inner.fn
    return inner


def settled(kernel: Any, args: tuple[Any, ...], named: Mapping[str, Any]) -> dict[str, Any]:
    """The named arguments of the function under autotune and heuristics."""
    found = dict(named)
    while not is_function(kernel):
        if hasattr(kernel, "configs"):
            name = kernel.base_fn.__name__
            config = _asked(kernel, found, name) or chosen(kernel.configs, found, name)
            found |= settings_of(config)
            _reset(kernel, args, found)
            if config.pre_hook is not None:
                config.pre_hook(_all(kernel, args, found))
        else:
            for name, value in kernel.values.items():
                found[name] = value(_all(kernel, args, found))
        kernel = kernel.fn
    return found


def _asked(kernel: Any, named: dict[str, Any], name: str) -> Any:
    """The configuration that `config=` names, which is taken from the arguments; or None."""
    if "config" not in named or "config" in kernel.arg_names:
        return None
    asked = named.pop("config")
    if isinstance(asked, Mapping):
        return chosen(kernel.configs, asked, name, strict=True)
    number = asked if isinstance(asked, int) and not isinstance(asked, bool) else -1
    if not 0 <= number < len(kernel.configs):
        raise DeviceError(
            f"config={asked!r}: '{name}' has {len(kernel.configs)} configurations",
            advice="give the number of one, from 0, or a dict of its settings",
        )
    return kernel.configs[number]


def _all(kernel: Any, args: tuple[Any, ...], named: Mapping[str, Any]) -> dict[str, Any]:
    return {**dict(zip(kernel.arg_names, args, strict=False)), **named}


def _reset(kernel: Any, args: tuple[Any, ...], named: Mapping[str, Any]) -> None:
    """What a user's hook does before each launch, or the zeros that the tuner was asked for."""
    given = _all(kernel, args, named)
    if getattr(kernel, "user_defined_pre_hook", False):
        kernel.pre_hook(given, reset_only=True)
        return
    for name in getattr(kernel, "reset_to_zero", ()):
        memory = memory_of(given.get(name), f"'{name}'")
        if memory is not None:
            memory.array.reshape(-1)[...] = np.zeros(1, memory.array.dtype)


# -- configurations -------------------------------------------------------------------------------


def settings_of(config: Any) -> dict[str, Any]:
    """What a configuration sets."""
    return {name: value for name, value in config.all_kwargs().items() if value is not None}


def chosen(
    configs: Sequence[Any], named: Mapping[str, Any], kernel: str, *, strict: bool = False
) -> Any:
    """The configuration that has these settings, of those that there are; `strict`: nothing else
    is named."""
    every = [settings_of(each) for each in configs]
    known = set().union(*every)
    asked = {name: value for name, value in named.items() if strict or name in known}
    fits = [at for at, each in enumerate(every) if _has(each, asked)]
    if len(fits) == 1:
        return configs[fits[0]]
    said = words(asked) if asked else "no settings"
    which = f"{len(fits)} configurations of '{kernel}' have these settings" if asked else (
        f"'{kernel}' has {len(every)} configurations, of which a GPU would time the fastest"
    )  # fmt: skip
    if not fits:
        which = f"no configuration of '{kernel}' has {said}"
    listed = "; ".join(words(each) for each in every[:MOST_LISTED])
    more = f"; and {len(every) - MOST_LISTED} more" if len(every) > MOST_LISTED else ""
    raise DeviceError(which, advice=f"name one by its settings: {listed}{more}")


def _has(settings: Mapping[str, Any], asked: Mapping[str, Any]) -> bool:
    return all(name in settings and settings[name] == value for name, value in asked.items())


def words(settings: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in settings.items())
