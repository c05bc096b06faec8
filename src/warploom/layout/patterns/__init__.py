"""Access patterns: which lane wants which elements, by name or from TOML."""
