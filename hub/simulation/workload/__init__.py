"""Jobs of a trace, and the simulated site that they run on."""
