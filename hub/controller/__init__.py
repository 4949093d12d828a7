"""The scheduling loop and its controllers: plan, start, reconcile, preempt, cull, enforce."""
