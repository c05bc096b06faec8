"""What the parameters of the catalogue mean, for people: one meaning for each name."""

from __future__ import annotations

# A test asks that every parameter of every name has one, and no other.
MEANINGS = {
    "taps": "elements of a window, along each axis",
    "width": "elements of one access: 1, 2 or 4; 0: by rule",
    "rows": "rows of outputs for each thread (image: of a strip; sketch: of a tile); 0: by rule",
    "block": "threads of a block, a multiple of 32; 0: by rule",
    "dtype": "element type: float32, int32, …",
    "weights": "value: passed with the launch; array: read from memory",
    "step": "rows of the image that are read at a time; 0: by rule",
    "images": "1: several images in one launch, as many as the arrays have; 0: one",
    "exchange": "neighbours come by shuffle or by load; auto: by rule",
    "degree": "coefficients of each factor, a multiple of 32",
    "level": "the grammar of the sketch: 0 is the kernel's own, 1 to 3 the published ones",
    "piece": "coefficients of each lane; 0: the usual",
    "operand": "how the next piece of a factor comes to a lane: load or shuffle",
    "finish": "finished sums are stored at once (store) or all at the end (keep)",
    "fields": "elements of a structure",
    "strategy": "registers, shared (memory) or direct; auto: by rule",
    "order": "of the exchanges: crc (columns, rows, columns) or rcr; auto: by rule",
    "tiles": "tiles for each warp, one after another; 0: by rule",
    "pack": "neighbouring structures that move as one; 0: by rule",
    "streaming": "1: accesses that are not kept in the cache",
    "m": "rows of the matrix",
    "n": "columns of the matrix",
    "columns": "columns of the tile, of lanes times columns",
    "lanes": "lanes that work together",
    "side": "side of a tile of lanes",
    "registers": "items of each lane",
    "bytes": "bytes of an item: 1, 2, 4, 8 or 16",
    "through": "registers alone, or shared memory",
    "axes": "the order of axes, as in numpy.transpose: 2,0,1",
    "operator": "what a scan combines with",
}
