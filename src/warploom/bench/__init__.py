"""The papers' tables, measured again."""
