"""PTX: read, run without a GPU, and written back."""
