"""Who is in a course, in which role, and what the role allows."""
