"""The values of the scheduler: snapshot, plan, states of a request, idleness."""
