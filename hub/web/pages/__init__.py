"""Web pages for people: desk, sessions, usage, and folders by feature."""
