"""Spark on one lease: a local session, scores by models of PyTorch, scikit-learn as SparkML."""
