"""Who is in a class, from a table and from JupyterHub."""
