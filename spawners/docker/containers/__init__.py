"""Configuration of containers: template, mounts, networks and firewall."""
