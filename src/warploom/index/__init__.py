"""Integer expressions over lanes, loops and parameters: what they are, mean, and may become."""
