"""The OpenAPI description, with examples."""
