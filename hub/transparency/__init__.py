"""The log that can be proved: enter lines, sign heads, publish them outside, export proofs."""
