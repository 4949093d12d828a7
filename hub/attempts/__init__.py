"""The contract between the service and a runner: spec, folder, journal, calls."""
