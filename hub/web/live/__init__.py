"""Event streams: form, pace, one look for all who follow, what each is told."""
