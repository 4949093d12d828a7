"""One Docker engine, asked with time-outs."""
