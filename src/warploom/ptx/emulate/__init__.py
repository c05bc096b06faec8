"""PTX on numbers: each instruction becomes a function on arrays over all threads of a batch."""
