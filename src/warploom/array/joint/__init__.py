"""One model of everything that is open: how maps run, tile sizes, threads of a group."""
