"""Start kernels."""
