"""Array expressions: sizes, types, operations, evaluation."""
