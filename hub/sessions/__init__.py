"""Open, hold, claim, keep and end sessions; start their servers at JupyterHub."""
