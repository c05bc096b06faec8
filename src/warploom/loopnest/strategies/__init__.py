"""What an expert would fix of a loop nest: named, partial decisions with a condition each."""
