"""Rows as programs: softmax, norms and losses with their gradients, stated as loop nests."""
