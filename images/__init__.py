"""Recipes and builds of the container images in which sessions and jobs run."""
