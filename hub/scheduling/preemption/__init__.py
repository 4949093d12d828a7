"""Select preemption victims by cost, and relocate requests to free whole nodes."""
