"""From fill to kernel, for term sketches, the catalogue and warp sketches alike.

A step of a filled program is a `Move` (where each register of each lane comes from) and, if it
folds, an accumulation; `exchange.py` and `accumulate.py` write them as kernel statements,
`program.py` a whole program.
"""

from warploom.sketch.code.move import LANE, REGISTER, Move
from warploom.sketch.code.program import lower_program
from warploom.sketch.code.proved import Proved, find, prove

__all__ = ["LANE", "REGISTER", "Move", "Proved", "find", "lower_program", "prove"]
