"""Quota of the group tree: limits, headroom, guaranteed quota, and charges in device-seconds."""
