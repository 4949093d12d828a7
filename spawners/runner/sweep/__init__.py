"""Run the trials of a sweep: the cells that they share once, then forks of the kernel."""
