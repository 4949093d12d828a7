"""From a teacher's files to a version that students get."""
