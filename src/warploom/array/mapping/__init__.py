"""Which map runs where: what constrains it, and every mapping that obeys."""
