"""The reconcile loop and its duties."""
