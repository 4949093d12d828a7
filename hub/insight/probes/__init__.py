"""Advice on batch size and other settings of a training run, from short measurements."""
