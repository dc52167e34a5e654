"""Published test log-likelihoods of the twenty density data sets, in nats.

"read": from the authors' own results, when this file was written. "recalled": from memory of the
paper's table, not read again; what is said to be ahead of such a figure should be so by more than
rounding.
"""

# Of each model: the paper, and whether its figures were read.
SOURCES = {
    "HCLT": (
        "Liu and Van den Broeck (2021), NeurIPS: five runs in the authors' repository "
        "(UCLA-StarAI/Tractable-PC-Regularization), mean at the best validation epoch",
        "read",
    ),
    "ID-SPN": ("Rooshenas and Lowd (2014), ICML", "recalled"),
    "ACMN": ("Lowd and Rooshenas (2013), AISTATS", "recalled"),
    "LearnSPN": ("Gens and Domingos (2013), ICML", "recalled"),
    "RAT-SPN": ("Peharz et al. (2019), UAI", "recalled"),
    "LearnPSDD, ensemble": ("Liang, Bekker and Van den Broeck (2017), UAI", "recalled"),
    "WinMine": ("decision trees, in Rooshenas and Lowd (2014), ICML", "recalled"),
    "continuous mixture": ("Correia et al. (2023), AAAI: the best of its variants", "recalled"),
    "NADE": ("Larochelle and Murray (2011), AISTATS", "recalled"),
    "EoNADE": ("Uria, Murray and Larochelle (2014), ICML", "recalled"),
}

FIGURES = {
    "HCLT": dict(nltcs=-5.999, msnbc=-6.058, plants=-14.265, baudio=-39.768, jester=-52.376,
                 bnetflix=-56.248, accidents=-26.736, dna=-79.051, pumsb_star=-23.650,
                 bbc=-249.049),
    "ID-SPN": dict(nltcs=-6.02, msnbc=-6.04, plants=-12.54, baudio=-39.79, jester=-52.86,
                   bnetflix=-56.36, accidents=-26.98, dna=-81.21, pumsb_star=-22.41, bbc=-248.93),
    "ACMN": dict(plants=-12.80, accidents=-27.11, dna=-80.03, pumsb_star=-23.55),
    "LearnSPN": dict(nltcs=-6.11, plants=-12.98, baudio=-40.50, dna=-82.52),
    "RAT-SPN": dict(nltcs=-6.01),
    "LearnPSDD, ensemble": dict(jester=-51.29, bnetflix=-55.71),
    "WinMine": dict(accidents=-26.32),
    "continuous mixture": dict(nltcs=-5.99, plants=-12.26, baudio=-39.02, jester=-51.93,
                               bnetflix=-55.31, accidents=-28.69, bbc=-240.19),
    "NADE": dict(nips=-273.08),
    "EoNADE": dict(nips=-272.39),
}  # fmt: skip
# By set, then by model.
PUBLISHED = {
    name: {model: of_model[name] for model, of_model in FIGURES.items() if name in of_model}
    for name in (*FIGURES["HCLT"], "nips")
}


def best_published(name, how=None):
    """The best model of a set and its figure: of all, or of those "read" or "recalled", or None."""
    found = [(m, value) for m, value in PUBLISHED[name].items() if how in (None, SOURCES[m][1])]
    return max(found, key=lambda item: item[1], default=None)
