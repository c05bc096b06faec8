"""From a sketch to a kernel in one call: filled, proved, lowered, tried, and ready to be run."""
