"""The Slurm engine: a lease becomes a job of a Slurm cluster."""
