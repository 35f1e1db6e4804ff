"""Pictures, inspections and reports."""
