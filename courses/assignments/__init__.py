"""Release and list assignments; how each stands for a student and for the class."""
