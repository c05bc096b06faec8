"""Sketches as text, written from their shapes and holes: sizes come in, .swflow text comes out.

They are those of section 5 of the Swizzleflow paper, at any size.

Level 1 is the grammar without groups and without constants in conditions, level 2 adds the
constants, level 3 the groups.
"""

from __future__ import annotations

from warploom.machine.record import CUDA

WARP = CUDA.lanes


def _swizzle(level: int, name: str) -> str:
    return name if level == 3 else f"{name}_no_group"


def _condition(level: int, name: str) -> str:
    return f"{name}_no_consts" if level == 1 else name


def transposition(order: str, columns: int, level: int, rows: int = WARP) -> str:
    """rows x columns, from column-major to row-major. `order` is crc or rcr; cr sums the rows.

    A swizzle of registers (c in the name of the strategy) stays within a thread, which is a row.
    """
    shape = f"[{rows},{columns}]"
    lines = [f"x: [{rows * columns}] = range(0, {rows * columns})", f"s0: {shape} = load_rep(x)"]
    here = "s0"
    for number, kind in enumerate(order):
        axis = "row" if kind == "c" else "col"
        for offset, family in enumerate(("xforms", "rots")):
            name = f"s{2 * number + offset + 1}"
            lines.append(f"{name}: {shape} = ?{_swizzle(level, f'{axis}_{family}')}({here})")
            here = name
    if order == "cr":
        lines.append(f"sum: [{rows}] = fold identity{{fold_len={columns}}}({here})")
        lines.append(f"goal: [{rows}] trove_sum{{n={columns}}}")
    else:
        lines.append(f"goal: {shape} trove")
    return "\n".join(lines) + "\n"


def received(taps: int, level: int, lanes: int = WARP) -> list[str]:
    shape = f"[{lanes},{taps}]"
    return [
        f"x: [{lanes + taps - 1}] = range(0, {lanes + taps - 1})",
        f"loaded: [{lanes},2] = load_trunc(x)",
        f"to_send: {shape} = ?{_condition(level, 'reg_select')}(loaded)",
        f"received_1: {shape} = ?{_swizzle(level, 'col_xforms')}(to_send)",
        f"received: {shape} = ?{_swizzle(level, 'col_rots')}(received_1)",
    ]


def stencil_1d(taps: int, level: int, lanes: int = WARP) -> str:
    lines = received(taps, level, lanes)
    keep = _condition(level, "cond_keep")
    lines.append(f"out: [{lanes}] = fold ?{keep}{{fold_len={taps}}}(received)")
    lines.append(f"goal: [{lanes}] conv{{k={taps}}}")
    return "\n".join(lines) + "\n"


def convolution_1d(taps: int, level: int, lanes: int = WARP) -> str:
    first = lanes + taps - 1
    keep = _condition(level, "cond_keep")
    lines = [
        *received(taps, level, lanes),
        f"w: [{taps}] = range({first}, {first + taps})",
        f"weights: [{lanes},{taps}] = broadcast(w)",
        f"products: [{lanes},{taps}] = * stack{{fold_len=2}}(received, weights)",
        f"out: [{lanes}] = + ?{keep}{{fold_len={taps}}}(products)",
        f"goal: [{lanes}] weight_conv{{k={taps}}}",
    ]
    return "\n".join(lines) + "\n"


def stencil_2d(taps: int, level: int, side: int = 4) -> str:
    """taps x taps on side x side lanes; each lane loads a small grid."""
    whole = side + taps - 1
    grid = -(-whole // side)
    select = _condition(level, "general_select")
    xforms, rots = _swizzle(level, "xforms"), _swizzle(level, "rots")
    tall, full = f"[{side},{side},{taps},{grid}]", f"[{side},{side},{taps},{taps}]"
    # With more than two loaded rows the halo is told apart by multiples of the warp's side.
    consts = f",consts=[0,1,-1,{side},-{side}]" if grid > 2 and level > 1 else ""
    along_x, along_y = "{main=0,second=2,out=0}", "{main=1,second=3,out=1}"
    lines = [
        f"x: [{whole},{whole}] = range(0, {whole * whole})",
        f"loaded: [{side},{side},{grid},{grid}] = load_grid_2d(x)",
        f"to_send_x: {tall} = ?{select}{{axis=2,dims=[0,2]{consts}}}(loaded)",
        f"received_x_1: {tall} = ?{xforms}{along_x}(to_send_x)",
        f"received_x: {tall} = ?{rots}{along_x}(received_x_1)",
        f"to_send_y: {full} = ?{select}{{axis=3,dims=[1,3]{consts}}}(received_x)",
        f"received_y_1: {full} = ?{xforms}{along_y}(to_send_y)",
        f"received_y: {full} = ?{rots}{along_y}(received_y_1)",
        f"out: [{side},{side}] = + reshape{{fold_len={taps * taps}}}(received_y)",
        f"goal: [{side},{side}] stencil_2d{{k={taps}}}",
    ]
    return "\n".join(lines) + "\n"


def _picked(name: str, first: int, width: int, level: int) -> list[str]:
    """One operand in registers: `width` symbols, one of them for each (thread, iteration)."""
    axes = "{main=0,second=1,out=1}"
    shape = f"[{width},{width}]"
    return [
        f"{name}: {shape} = {{",
        f"  {name}_in: [{width}] = range({first}, {first + width})",
        f"  {name}_all: {shape} = broadcast({name}_in)",
        f"  {name}_1: {shape} = ?{_swizzle(level, 'xforms')}{axes}({name}_all)",
        f"  {name}_2: {shape} = ?{_swizzle(level, 'rots')}{axes}({name}_1)",
        "}",
    ]


def multiplication_narrow(level: int, width: int = 4) -> str:
    """Polynomials of `width` coefficients, two accumulators for each thread."""
    keep = _condition(level, "cond_keep")
    wide = f"[{width},2,{width}]"
    lines = [
        *_picked("a", 0, width, level),
        *_picked("b", width, width, level),
        f"products: [{width},{width}] = * stack{{fold_len=2}}(a, b)",
        f"both: {wide} = broadcast{{group=1}}(products)",
        f"filtered_1: {wide} = ?{keep}{{restrict=[1,0]}}(both)",
        f"filtered_2: {wide} = ?{keep}{{restrict=[1,1]}}(filtered_1)",
        f"sums: [{width},2] = + reshape{{fold_len={width}}}(filtered_2)",
        f"turned: [2,{width}] = transpose(sums)",
        f"out: [{2 * width}] = reshape(turned)",
        f"goal: [{2 * width}] poly_mult{{w={width}}}",
    ]
    return "\n".join(lines) + "\n"


def _duplicated(name: str, order: str) -> list[str]:
    """A definition that copies [4,4,2] to [4,4,4], taking halves in the given order."""
    cells = [(i, j, half) for i in range(4) for j in range(4) for half in order]
    rows = ", ".join(f"(0, ({i}, {j}, {half}))" for i, j, half in cells)
    return [f"define {name}([4,4,2]) -> [4,4,4] = [{rows}]"]


def _multiply_pairs(level: int) -> list[str]:
    """From the four products of two halves each to the sixteen sums."""
    keep = _condition(level, "cond_keep")
    lines = [
        "products: [4,4,4] = * stack{fold_len=2}(a, b)",
        "filtered_0: [4,4,4,4] = broadcast{group=1}(products)",
    ]
    pairs = [(product, accumulator) for product in range(4) for accumulator in range(4)]
    for number, (p, q) in enumerate(pairs):
        lines.append(
            f"filtered_{number + 1}: [4,4,4,4] = "
            f"?{keep}{{restrict=[3,{p},1,{q}]}}(filtered_{number})"
        )
    return [
        *lines,
        "sums: [4,4] = + reshape{fold_len=16}(filtered_16)",
        "turned: [4,4] = transpose(sums)",
        "out: [16] = reshape(turned)",
        "goal: [16] poly_mult{w=8}",
    ]


def multiplication_registers(level: int) -> str:
    """Width 8, each operand in two registers of four threads."""
    lines = [*_duplicated("alternate", "0101"), *_duplicated("repeat", "0011")]
    for name, first, copy in (("a", 0, "alternate"), ("b", 8, "repeat")):
        lines += _picked(f"{name}1", first, 4, level)
        lines += _picked(f"{name}2", first + 4, 4, level)
        lines.append(f"{name}12: [4,4,2] = stack({name}1, {name}2)")
        lines.append(f"{name}: [4,4,4] = {copy}({name}12)")
    return "\n".join([*lines, *_multiply_pairs(level)]) + "\n"


def multiplication_shared(level: int) -> str:
    """Width 8, each operand in shared memory, read twice in each iteration."""
    axes = "{main=1,second=0,out=1}"
    xforms, rots = _swizzle(level, "xforms"), _swizzle(level, "rots")
    lines = [*_duplicated("alternate", "0101"), *_duplicated("repeat", "0011")]
    for name, first, copy in (("a", 0, "alternate"), ("b", 8, "repeat")):
        lines.append(f"{name}_in: [8] = range({first}, {first + 8})")
        lines.append(f"{name}_all: [4,8] = broadcast({name}_in)")
        for number in (1, 2):
            lines.append(f"{name}{number}_1: [4,8] = ?{xforms}{axes}({name}_all)")
            lines.append(f"{name}{number}: [4,4] = ?{rots}{axes}({name}{number}_1)")
        lines.append(f"{name}12: [4,4,2] = stack({name}1, {name}2)")
        lines.append(f"{name}: [4,4,4] = {copy}({name}12)")
    return "\n".join([*lines, *_multiply_pairs(level)]) + "\n"


def gaussian_goal(lanes: int = 8) -> str:
    """Three-tap sums with weights w, w + 1, w; output lane*2 + half, as the sketch stores it."""
    outputs = [half * lanes + lane for lane in range(lanes) for half in range(2)]
    weights = _gaussian_weights(lanes)
    cells = [[[i + tap, weights[tap]] for tap in range(3)] for i in outputs]
    return f"goal: [{2 * lanes}] = fold fold {cells}"


def _gaussian_weights(lanes: int) -> list[int]:
    return [2 * lanes + 2, 2 * lanes + 3, 2 * lanes + 2]


def gaussian_input(lanes: int = 8) -> str:
    values = [i if i < 2 * lanes + 2 else -1 for i in range(4 * lanes)]
    rows = [values[lanes * r : lanes * r + lanes] for r in range(4)]
    return f"x: [4,{lanes}] = {rows}"


def gaussian_hvx(lanes: int = 8) -> str:
    """A Gaussian on vector registers of eight lanes: six instructions are open."""
    picked = list(range(4 * lanes, 10 * lanes))
    lines = [f"define taps([10,{lanes}]) -> [2,3,{lanes}] = {picked}", gaussian_input(lanes)]
    before = "x"
    for number in range(1, 7):
        lines.append(f"o{number}: [{4 + number},{lanes}] = ?hvx_2x1{{in_lim=4,fresh}}({before})")
        before = f"o{number}"
    lines += [
        f"picked: [2,3,{lanes}] = taps(o6)",
        f"by_lane: [{lanes},2,3] = rot_idx{{r=1}}(picked)",
        f"w: [3] = {_gaussian_weights(lanes)}",
        f"weights: [{lanes},2,3] = broadcast(w)",
        f"products: [{lanes},2,3] = * stack{{fold_len=2}}(by_lane, weights)",
        f"sums: [{lanes},2] = + reshape{{fold_len=3}}(products)",
        f"out: [{2 * lanes}] = reshape(sums)",
        gaussian_goal(lanes),
    ]
    return "\n".join(lines) + "\n"
