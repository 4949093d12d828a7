"""Settings, state folder, secrets and site file of one installation."""
