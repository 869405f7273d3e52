"""Web: shared by the local web pages: access control, media files by name, and the video player."""
