"""Predictions from what ran before (advice and anomalies to come)."""
