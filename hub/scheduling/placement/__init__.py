"""Which devices a request gets: best fit, gangs, shares."""
