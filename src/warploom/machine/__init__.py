"""What a machine is, and the counters both evaluators use."""
