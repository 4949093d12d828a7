"""JupyterHub as Carrel runs it: configuration, templates and REST client."""
