"""Dependencies of routes: context, caller, body, upload; and error responses."""
