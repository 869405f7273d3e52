"""Labels: people's judgements of clips: tasks in a browser, storage, export and import, agreement and alignment."""
