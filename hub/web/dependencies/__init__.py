"""What routes ask for: context, caller, visitor, body, upload; and error answers."""
