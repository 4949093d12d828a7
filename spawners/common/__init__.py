"""Code that all engines share: course links, starts in flight, preemption notices."""
