"""Conversions between register layouts: shuffles, shared memory, matrix instructions."""
