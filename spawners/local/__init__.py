"""Run jobs as processes of this machine."""
