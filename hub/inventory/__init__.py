"""Devices, nodes and images: shown, chosen, drained, quarantined."""
