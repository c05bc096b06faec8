"""Options that several commands have, each declared once."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from warploom.choices import LANGUAGES
from warploom.cli.declare import option

Text = StrEnum("Text", list(LANGUAGES))  # type: ignore[misc]  # the one list of languages


class Form(StrEnum):
    kernel = "kernel"
    function = "function"


FORM = "A kernel, or a function of a warp for a kernel of your own (a header)."
SECONDS = 60.0  # a launch of PTX is stopped after so long, unless another time is given


def json_option() -> Any:
    """The one option that every command has."""
    return option(
        None, "--json", metavar="FILE", help="Write a list of records; - is standard output."
    )


# -- where results are kept, and who does the work -------------------------------------------------


def store_option() -> Any:
    said = "Where answers and samples are kept; default: your own."
    return option(None, "--store", metavar="FILE", help=said)


def no_store_option() -> Any:
    return option(False, "--no-store", help="Search again, and keep nothing.")


def processes_option() -> Any:
    said = "Do what takes long in N processes; 0: one for each core."
    return option(None, "--processes", min=0, metavar="N", help=said)


def cluster_option() -> Any:
    said = (
        "A Dask scheduler, tcp://127.0.0.1:8786 or tls://HOST:PORT (needs warploom[cluster]). Dask "
        "runs code it is sent: only this machine or TLS is taken."
    )
    return option(None, "--cluster", metavar="ADDRESS", help=said)


# -- kernels of sketches ---------------------------------------------------------------------------


def lanes_option() -> Any:
    said = "The length of the axis across lanes (default: the first one of most holes and folds)."
    return option(None, "--lanes", min=1, help=said)


def step_option() -> Any:
    said = "Tiles of this input begin so far apart; 0: all read the same (default: side by side)."
    return option([], "--step", metavar="X=N", help=said)


def dtype_option() -> Any:
    said = "Element type: float32, int32, uint8, … (default: float32)."
    return option(None, "--dtype", metavar="TYPE", help=said)


def index_bits_option() -> Any:
    said = "Indices of 32 bits, or 64 for larger arrays; the header says how large."
    return option(32, "--index-bits", metavar="32|64", help=said)


# -- launches of PTX -------------------------------------------------------------------------------


def kernel_option(said: str = "Needed if the file has several.") -> Any:
    return option(None, "--kernel", metavar="NAME", help=said)


def grid_option(said: str = "Blocks: X or X,Y or X,Y,Z.") -> Any:
    return option("1", "--grid", metavar="X,Y,Z", help=said)


def block_option() -> Any:
    return option("32", "--block", metavar="X,Y,Z", help="Threads of a block, likewise.")


def arg_option() -> Any:
    return option([], "--arg", metavar="TYPE…", help="One for each parameter.")


def variable_option() -> Any:
    said = "What a __constant__ or __device__ variable holds."
    return option([], "--variable", metavar="NAME=TYPE…", help=said)


def shared_option() -> Any:
    return option(0, "--shared", metavar="BYTES", help="Bytes of dynamic shared memory.")


def launch_seconds_option() -> Any:
    said = "Wall time for the PTX: read and run."
    return option(SECONDS, "--seconds", min=0, metavar="S", help=said)


def arch_option() -> Any:
    return option("sm_90a", "--arch", metavar="ARCH", help="What CUDA text is compiled for.")
