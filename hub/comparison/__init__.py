"""Compare two runs: sources by lines, numbers under a tolerance, images by pixels."""
