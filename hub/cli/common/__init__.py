"""Parts that commands share: options, output, exit status and live progress."""
