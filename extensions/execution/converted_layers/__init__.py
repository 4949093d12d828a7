"""Layers as other operations with the same parameters, which can be fused or compiled better."""
