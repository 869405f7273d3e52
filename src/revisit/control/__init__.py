"""Control: one camera script, compiled to a path, handed to each generator in the form it takes, and recorded."""
