"""Choose devices for a request: best fit, gangs, shares and locality."""
