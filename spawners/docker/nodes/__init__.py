"""Docker hosts as nodes: devices, running containers, warm pool and cleanup."""
