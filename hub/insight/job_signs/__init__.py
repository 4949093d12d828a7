"""Signs that something is wrong with a running job: measured series in, findings out.

Pure functions of the standard library. What they find is a suggestion with its evidence.
"""
