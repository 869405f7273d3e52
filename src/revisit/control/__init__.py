"""Control: compiles camera scripts to paths, writes them in the form each generator reads, and runs generators."""
