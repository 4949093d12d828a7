"""The log that can be proved, in SQL: lines, Merkle trees, heads and verification."""
