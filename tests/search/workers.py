"""Functions that tests have run in other processes."""

from __future__ import annotations

import os
import sys
import time

from warploom.errors import CheckError
from warploom.search.storage.store import Key, Store


def put_rows(path: str, worker: int, count: int) -> None:
    store = Store(path, "")
    for number in range(count):
        store.put(Key("row", [worker, number], "none"), f"{worker}-{number}")


def squared(number: int) -> tuple[int, int]:
    """The square, and who computed it."""
    sys.stdout.write("this is no message\n")
    return number * number, os.getpid()


def napped(seconds: float) -> None:
    time.sleep(seconds)


def refused(number: int) -> int:
    raise CheckError(f"not {number}", advice="take another")


def died(status: int) -> int:
    os._exit(status)


def died_at_first(path: str) -> str:
    """The second who is asked does it."""
    if not os.path.exists(path):
        open(path, "w").close()
        os._exit(9)
    return "done"


def until(begun: str, end: str) -> None:
    """Says that it has begun, and waits to be told that it may end."""
    open(begun, "w").close()
    while not os.path.exists(end):
        time.sleep(0.05)


def many_bytes(megabytes: int, begun: str) -> bytes:
    open(begun, "w").close()
    return bytes(megabytes << 20)


class FakeBench:
    """Measures nothing: it tells who was asked."""

    def __init__(self, name: str) -> None:
        self.device, self.process = f"{name} GPU", os.getpid()

    def measure(self, prepared: int, samples: int) -> list[float]:
        return [float(self.process)] * samples


class UnpicklableError(Exception):
    def __init__(self) -> None:
        super().__init__("cannot travel")
        self.held = lambda: None


def untold() -> None:
    raise UnpicklableError
