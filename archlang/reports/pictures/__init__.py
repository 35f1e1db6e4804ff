"""Pictures of an architecture, drawn from its graph before any block is dissolved."""
