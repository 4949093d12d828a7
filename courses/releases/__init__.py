"""Turn a teacher's source files into the version that students get."""
