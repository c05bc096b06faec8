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


FORM = "Write a whole kernel, or a header with a warp-level function for your own kernel."
SECONDS = 60.0  # a launch of PTX is stopped after so long, unless another time is given


def json_option() -> Any:
    """The one option that every command has."""
    return option(
        None,
        "--json",
        metavar="FILE",
        help="Write the answer as JSON records; - is standard output.",
    )


# -- where results are kept, and who does the work -------------------------------------------------


def store_option() -> Any:
    said = "The file that keeps results (default: one in your data folder)."
    return option(None, "--store", metavar="FILE", help=said)


def no_store_option() -> Any:
    return option(False, "--no-store", help="Ignore kept results, and keep none.")


def processes_option() -> Any:
    said = "Use N processes for long work; 0 means one for each core."
    return option(None, "--processes", min=0, metavar="N", help=said)


def cluster_option() -> Any:
    said = (
        "Use the workers of a Dask scheduler: tcp://127.0.0.1:8786 or tls://HOST:PORT (needs "
        "warploom[cluster]). Dask runs code that it is sent, so other machines need TLS."
    )
    return option(None, "--cluster", metavar="ADDRESS", help=said)


# -- kernels of sketches ---------------------------------------------------------------------------


def lanes_option() -> Any:
    said = "Length of the axis that lies across lanes (default: the first axis of most steps)."
    return option(None, "--lanes", min=1, help=said)


def step_option() -> Any:
    said = "Tiles of input X begin N elements apart; 0: all tiles read the same ones."
    return option([], "--step", metavar="X=N", help=said)


def dtype_option() -> Any:
    said = "Element type: float32, int32, uint8, … (default: float32)."
    return option(None, "--dtype", metavar="TYPE", help=said)


def index_bits_option() -> Any:
    said = "Width of index arithmetic; the header says how large arrays may be."
    return option(32, "--index-bits", metavar="32|64", help=said)


# -- launches of PTX -------------------------------------------------------------------------------


def kernel_option(said: str = "Which kernel, if the file has several.") -> Any:
    return option(None, "--kernel", metavar="NAME", help=said)


def grid_option(said: str = "Number of blocks: X or X,Y or X,Y,Z.") -> Any:
    return option("1", "--grid", metavar="X,Y,Z", help=said)


def block_option() -> Any:
    return option("32", "--block", metavar="X,Y,Z", help="Threads of a block: X or X,Y or X,Y,Z.")


def arg_option() -> Any:
    return option(
        [],
        "--arg",
        metavar="TYPE…",
        help="The next argument of the kernel; one for each parameter.",
    )


def variable_option() -> Any:
    said = "The value of a __constant__ or __device__ variable."
    return option([], "--variable", metavar="NAME=TYPE…", help=said)


def shared_option() -> Any:
    return option(0, "--shared", metavar="BYTES", help="Bytes of dynamic shared memory.")


def launch_seconds_option() -> Any:
    said = "Time limit for reading and running the PTX."
    return option(SECONDS, "--seconds", min=0, metavar="S", help=said)


def arch_option() -> Any:
    return option(
        "sm_90a", "--arch", metavar="ARCH", help="Compile CUDA source for this architecture."
    )
