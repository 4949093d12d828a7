"""Explanation: admission, wait reasons, suggestions, quotes and previews of quota changes."""
