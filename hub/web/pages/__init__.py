"""Web pages: desk, sessions, usage and sign-in; jobs, courses and admin in folders."""
