"""Many fitted scikit-learn pipelines that share their equal steps."""
