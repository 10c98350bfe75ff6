"""The papers' tables and figures as files that a reader understands: parts, systems, numbers."""
