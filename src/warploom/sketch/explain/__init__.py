"""Why a sketch has no fill: an impossible sketch comes in, goal cells, values and holes go out."""
