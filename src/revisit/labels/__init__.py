"""Labels: what people say of clips. Tasks in a browser, a store, files in and out, agreement and alignment."""
