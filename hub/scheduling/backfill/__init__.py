"""Start requests behind the head of the queue without delaying it."""
