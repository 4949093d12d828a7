"""Bodies of rehearsals and official checks of courses."""
