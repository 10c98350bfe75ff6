"""The papers' tables and figures as readable files: parts, systems, numbers."""
