"""Official checks: students run the hidden tests, as often as the teacher allows."""
