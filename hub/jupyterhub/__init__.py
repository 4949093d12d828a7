"""JupyterHub as Carrel runs it, and its REST API."""
