"""The same memory in other units: layouts of elements as layouts of bytes, and back."""

from __future__ import annotations

from warploom.errors import CheckError
from warploom.layout.language.ir import Layout, Shift, Strided, Swizzle, Tree, chain, compose, flat
from warploom.layout.language.show import show


def to_bytes(layout: Layout, size: int) -> Layout:
    """A layout of elements of `size` bytes as one of bytes: the mode of stride 1 grows.

    >>> show(to_bytes(compose(Swizzle(3, 3, 3), Strided((8, 64), (64, 1))), 2))
    'S<3,4,3> o (8,128):(128,1)'
    """
    return compose(*(_finer(part, size) for part in chain(layout)))


def to_elements(layout: Layout, size: int) -> Layout:
    """A layout of bytes as one of elements of `size` bytes.

    >>> show(to_elements(compose(Swizzle(3, 4, 3), Strided((8, 128), (128, 1))), 2))
    'S<3,3,3> o (8,64):(64,1)'
    """
    return compose(*(_coarser(part, size) for part in chain(layout)))


def _finer(part: Layout, size: int) -> Layout:
    match part:
        case Swizzle(bits, base, shift):
            return Swizzle(bits, base + _log2(size), shift)
        case Shift(by):
            return Shift(by * size)
        case Strided(shape, stride):
            if size > 1 and flat(stride).count(1) != 1:
                raise CheckError(
                    f"{show(part)} has no mode of stride 1 in which an element's bytes could lie"
                )
            return Strided(*_tree(shape, stride, size, _finer_mode))
        case _:
            raise _unknown(part)


def _coarser(part: Layout, size: int) -> Layout:
    match part:
        case Swizzle(bits, base, shift):
            if base < _log2(size):
                raise CheckError(f"{show(part)} of bytes moves parts of elements of {size} bytes")
            return Swizzle(bits, base - _log2(size), shift)
        case Shift(by):
            return Shift(_divided(by, size))
        case Strided(shape, stride):
            return Strided(*_tree(shape, stride, size, _coarser_mode))
        case _:
            raise _unknown(part)


def _tree(shape: Tree, stride: Tree, size: int, mode: object) -> tuple[Tree, Tree]:
    if isinstance(shape, tuple) and isinstance(stride, tuple):
        parts = [_tree(*part, size, mode) for part in zip(shape, stride, strict=True)]
        return tuple(s for s, _ in parts), tuple(d for _, d in parts)
    assert isinstance(shape, int)
    assert isinstance(stride, int)
    assert callable(mode)
    count, step = mode(shape, stride, size)
    return int(count), int(step)


def _finer_mode(count: int, step: int, size: int) -> tuple[int, int]:
    return (count * size, 1) if step == 1 else (count, step * size)


def _coarser_mode(count: int, step: int, size: int) -> tuple[int, int]:
    return (_divided(count, size), 1) if step == 1 else (count, _divided(step, size))


def _divided(number: int, size: int) -> int:
    if number % size:
        raise CheckError(f"{number} bytes are no whole elements of {size} bytes")
    return number // size


def _log2(size: int) -> int:
    if size < 1 or size & (size - 1):
        raise CheckError(f"an element of {size} bytes", advice="it has 1, 2, 4, 8 or 16 bytes")
    return size.bit_length() - 1


def _unknown(part: Layout) -> CheckError:
    return CheckError(f"{show(part)[:60]} has no other units", advice="swizzles and strides have")
