"""Nbgrader's exchange in the words of ngshare's REST API."""
