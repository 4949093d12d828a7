"""The IPython magics of Carrel: %carrel."""
