"""Open, hold, claim, keep and end sessions; asking JupyterHub for servers."""
