"""Train data-parallel in the processes of a lease; ``carrel.execution.parallelize`` uses it."""
