"""Registers of few bits as CUDA: the words that hold several, of matrices and of integers."""

from __future__ import annotations

from warploom.emit.async_helper import matrix_name
from warploom.emit.product_group import ProductPrinter
from warploom.kernel import ir
from warploom.kernel.dtype import DType

WORD = 32  # bits


class WordPrinter(ProductPrinter):
    """Prints for a printer of CUDA."""

    def load_matrix(self, stmt: ir.LoadMatrix) -> None:
        lines, many = self.printer.lines, stmt.count
        words = [f"word{at}" for at in range(many)]
        lines.open("")
        lines.add(f"unsigned int {', '.join(words)};")
        self.call(
            matrix_name(False, many, stmt.transposed), self.place(stmt.array, stmt.index), *words
        )
        self._parted(stmt.target, words)
        lines.close()

    def unpack(self, stmt: ir.Unpack) -> None:
        lines, cells = self.printer.lines, range(4 // stmt.source.dtype.bytes)
        held = [self.printer.neighbour(stmt.source, at) for at in cells]
        word = f"(unsigned int){held[0]}" if len(held) == 1 else self.printer.words_of(held, 8)[0]
        if stmt.signed:  # its highest bit turned, an integer is one without a sign
            word = f"({word}) ^ {0x88888888 if stmt.bits == 4 else 0x80808080:#x}u"
        less = stmt.zero + ((1 << stmt.bits - 1) if stmt.signed else 0)
        pairs = [f"pair{at}" for at in range(stmt.count // 2)]
        lines.open("")
        lines.add(f"unsigned int {', '.join(pairs)};")
        self.call(f"unpack_{stmt.target.dtype!r}_{stmt.bits}_{less}", word, *pairs)
        self._parted(stmt.target, pairs)
        lines.close()

    def interleave(self, stmt: ir.Interleave) -> None:
        lines = self.printer.lines
        held = [self.printer.neighbour(stmt.source, at) for at in range(stmt.count)]
        words, half = self.printer.words_of(held, 16), stmt.count // 4
        lines.open("")
        for at in range(half):
            for side, chosen in enumerate(("0x5410", "0x7632")):
                pair = f"__byte_perm({words[at]}, {words[at + half]}, {chosen})"
                lines.add(f"const unsigned int pair{2 * at + side} = {pair};")
        self._parted(stmt.target, [f"pair{at}" for at in range(2 * half)])
        lines.close()

    def _parted(self, target: ir.Cell, words: list[str]) -> None:
        """Words as the numbers that they hold, one after another: those of a word, or one."""
        kind, bits = self.printer.type(target.dtype), 8 * target.dtype.bytes
        many = WORD // bits
        for at, word in enumerate(words):
            for part in range(many):
                cell = self.printer.neighbour(target, many * at + part)
                made = f"({kind})({word}{f' >> {bits * part}' if part else ''})"
                if target.dtype is DType.F32:
                    made = f"__uint_as_float({word})"
                self.add(f"{cell} = {made};")

    def store_matrix(self, stmt: ir.StoreMatrix) -> None:
        words = self.printer.words_of(
            [self.printer.neighbour(stmt.value, at) for at in range(2 * stmt.count)], 16
        )
        name = matrix_name(True, stmt.count, stmt.transposed)
        self.call(name, self.place(stmt.array, stmt.index), *words)
