"""A memory over HTTP: the REST service, and the page that shows a memory."""
