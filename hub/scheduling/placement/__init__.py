"""Placement of requests on devices: best fit, gangs and shares."""
