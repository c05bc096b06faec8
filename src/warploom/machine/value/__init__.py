"""Machine values: what an elementwise instruction computes, written once for all interpreters."""
