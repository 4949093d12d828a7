"""What trials of a sweep share: notebooks are analysed in a process with limits."""
