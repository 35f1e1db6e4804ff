"""The documentation as a site: `make site` builds it with MkDocs from the pages of the repository."""
