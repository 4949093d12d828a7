"""What students get back."""
