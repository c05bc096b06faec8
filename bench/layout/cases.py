"""Conversions that are measured in a loop beside Triton's: name, from, to, bytes of an element,
shape, warps. Plain texts: Triton's own process reads them too."""

ROW = "blocked([1,1],[1,32],[1,1],[1,0])"
LOOPED: list[tuple[str, str, str, int, tuple[int, int], int]] = [
    ("f32 32x32 row v1 to column v1", ROW, "blocked([1,1],[32,1],[1,1],[0,1])", 4, (32, 32), 1),
    ("f32 32x32 row v4 to column v4", "blocked([1,4],[4,8],[1,1],[1,0])",
     "blocked([4,1],[8,4],[1,1],[0,1])", 4, (32, 32), 1),
    ("f16 64x64 row v8 to column v8", "blocked([1,8],[4,8],[4,1],[1,0])",
     "blocked([8,1],[8,4],[1,4],[0,1])", 2, (64, 64), 4),
    ("f16 64x64 row v8 to mma A", "blocked([1,8],[4,8],[4,1],[1,0])", "mma_a(2,[4,1])", 2,
     (64, 64), 4),
    ("f32 64x64 mma C to row v4", "mma_c([4,1])", "blocked([1,4],[2,16],[4,1],[1,0])", 4,
     (64, 64), 4),
    ("f16 64x64 mma C to row v8", "mma_c([4,1])", "blocked([1,8],[4,8],[4,1],[1,0])", 2,
     (64, 64), 4),
    ("f32 16x32 row to columns in pairs", ROW, "blocked([1,1],[16,2],[1,1],[0,1])", 4, (16, 32), 1),
    ("f32 2x32, one mixed bit", ROW, "blocked([1,2],[2,16],[1,1],[1,0])", 4, (2, 32), 1),
    ("f32 4x32, two mixed bits", ROW, "blocked([1,4],[4,8],[1,1],[1,0])", 4, (4, 32), 1),
    ("f32 8x32, three mixed bits", ROW, "blocked([1,8],[8,4],[1,1],[1,0])", 4, (8, 32), 1),
    ("f16 16x16 mma C to mma A", "mma_c()", "mma_a(2)", 2, (16, 16), 1),
    ("i8 16x32 mma C to mma A", "mma_c()", "mma_a(4)", 1, (16, 32), 1),
]  # fmt: skip
