"""Reproduction report: what the papers print, beside what was computed here, on one page.

`sources` lists what every paper reports, in its order. `jobs` computes it, by the experiments of
the folder above. `results` keeps what jobs found in a small file, `checking` compares that with a
fresh part, and `page` and `document` lay it out. `python -m experiments.reproduction` does it all.
"""
