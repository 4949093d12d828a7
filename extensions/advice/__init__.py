"""Probes of training steps and notebooks: measure short runs, and advise on their settings."""
