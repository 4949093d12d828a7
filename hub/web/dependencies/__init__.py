"""What routes depend on: context, caller, body, upload; and error responses."""
