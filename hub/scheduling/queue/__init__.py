"""Order the queue by priority and fair share; the state of one scheduling cycle."""
