"""What a container is created with: template, mounts, logs."""
