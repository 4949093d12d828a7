"""Predict run times from the jobs that ran before."""
