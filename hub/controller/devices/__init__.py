"""Judge the condition of devices, validate free ones, and quarantine or release them."""
