"""The tables, their rows as values, conditions on them."""
