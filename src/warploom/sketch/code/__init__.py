"""From fill to kernel, for term sketches, the catalogue and warp sketches alike.

A step of a filled program is a `Move` (where each register of each lane comes from) and, if it
folds, an accumulation; `exchange.py` and `accumulate.py` write them as kernel statements,
`program.py` a whole program.
"""
