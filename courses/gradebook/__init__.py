"""nbgrader's gradebook: written in a process of its own, read without opening it."""
