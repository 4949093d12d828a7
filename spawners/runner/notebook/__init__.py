"""Execute notebooks."""
