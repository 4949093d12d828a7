"""Start and manage the kernels of notebook jobs."""
