"""Models behind servers that speak as OpenAI's API does: the endpoint that all share, and pictures from text."""
