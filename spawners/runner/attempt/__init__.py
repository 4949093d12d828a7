"""What every attempt has: monitor, memory, working folder; a command."""
