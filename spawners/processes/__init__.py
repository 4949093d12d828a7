"""Linux processes of a lease: find, stop, identify."""
