"""Pages of courses for teachers, graders and students."""
