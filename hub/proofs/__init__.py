"""Lines and heads of the log as text, and files that prove lines; needs no service."""
