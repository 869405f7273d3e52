"""The questions of the benchmarks, in our own words; each module says which evidence their answers make."""
