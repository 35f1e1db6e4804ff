"""Name resolution: scopes, imports, and the values of statics."""
