"""Problems as benchmarks of generated kernels state them, beside candidate files: judged here."""
