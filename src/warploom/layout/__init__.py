"""Where an element lives: layouts, access patterns, the best layout or a proof, conversions."""
