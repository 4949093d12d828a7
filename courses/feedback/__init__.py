"""Write feedback pages and return them to students."""
