"""The sketch language: arrays of terms moved by gathers and packed by folds, some left open."""
