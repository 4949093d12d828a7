"""What containers are created with: template, mounts, networks and firewall."""
