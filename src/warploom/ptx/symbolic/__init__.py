"""PTX on symbols: every address as a normal form, what stores may touch, distances by lane."""
