"""The prefix of a class: given cells of an assignment that run once for all members of a course."""
