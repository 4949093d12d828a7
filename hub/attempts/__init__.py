"""The contract between service and runner: attempt spec, folder, journal and REST calls."""
