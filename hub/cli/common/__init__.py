"""What commands share: options, output, errors, exit status, live progress."""
