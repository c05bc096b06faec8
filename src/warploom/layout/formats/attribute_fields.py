"""The fields of each attribute that is read here. A field that is not known is refused: nobody
knows what it says of the layout."""

from __future__ import annotations

from warploom.errors import CheckError
from warploom.layout.formats.mlir import Attribute

_BLOCKS = ("CTAsPerCGA", "CTASplitNum", "CTAOrder", "CGALayout")
_SWIZZLED = ("vec", "perPhase", "maxPhase", "order", *_BLOCKS)
_FIELDS = {
    "ttg.blocked": ("sizePerThread", "threadsPerWarp", "warpsPerCTA", "order", *_BLOCKS),
    "ttg.nvidia_mma": ("versionMajor", "versionMinor", "warpsPerCTA", "instrShape", *_BLOCKS),
    "ttg.amd_mfma": (
        "version", "versionMajor", "versionMinor", "warpsPerCTA", "instrShape", "isTransposed",
        "tilesPerWarp", "elementBitWidth", *_BLOCKS,
    ),
    "ttg.amd_wmma": (
        "version", "isTranspose", "isTransposed", "ctaLayout", "warpsPerCTA", "tilesPerWarp",
        "instrShape", *_BLOCKS,
    ),
    "ttg.dot_op": ("opIdx", "parent", "kWidth"),
    "ttg.slice": ("dim", "parent"),
    "ttg.linear": ("register", "lane", "warp", "block"),
    "ttg.swizzled_shared": _SWIZZLED,
    "ttg.amd_rotating_shared": _SWIZZLED,
    "ttg.nvmma_shared": (
        "swizzlingByteWidth", "transposed", "elementBitWidth", "fp4Padded", *_BLOCKS,
    ),
    "ttg.shared_linear": ("offset", "block", "alignment"),
    "ttg.padded_shared": ("order", "shape", "offset", "block", *_BLOCKS),
    "ttng.tensor_memory_encoding": (
        "blockM", "blockN", "colStride", "fp4Padded", *_BLOCKS,
    ),
}  # fmt: skip


def check_fields(attribute: Attribute) -> None:
    """That all its fields, and those of its parents, are known."""
    known = _FIELDS.get(attribute.name)
    strange = [key for key in attribute.fields if known is not None and key not in known]
    if known is not None and strange:
        raise CheckError(
            f"#{attribute.name} has no field '{strange[0][:40]}'",
            advice=f"known are {', '.join(known)}",
        )
    parent = attribute.fields.get("parent")
    if isinstance(parent, Attribute):
        check_fields(parent)
