"""``carrel course``: commands for teachers and students."""
