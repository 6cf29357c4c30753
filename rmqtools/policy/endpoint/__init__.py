"""Features of servers, by kind and version, and the texts of their refusals."""
