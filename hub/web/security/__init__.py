"""Authentication and authorization: OAuth, tokens, CSRF and security headers."""
