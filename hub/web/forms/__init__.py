"""HTML forms: typed fields, entered values and errors."""
