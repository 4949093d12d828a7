"""Values of the scheduler core: the snapshot that it reads and the plan that it returns."""
