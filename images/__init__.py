"""The images that sessions and jobs run in: what they are made of, and how they are built."""
