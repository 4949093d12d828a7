"""Bundles of files, their contents by hash, nbgrader's folders."""
