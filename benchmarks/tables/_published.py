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
}

PUBLISHED = {
    "nltcs": {
        "HCLT": -5.999,
        "RAT-SPN": -6.01,
        "ID-SPN": -6.02,
        "LearnSPN": -6.11,
        "continuous mixture": -5.99,
    },
    "msnbc": {"ID-SPN": -6.04, "HCLT": -6.058},
    "plants": {
        "ID-SPN": -12.54,
        "ACMN": -12.80,
        "LearnSPN": -12.98,
        "HCLT": -14.265,
        "continuous mixture": -12.26,
    },
    "baudio": {
        "HCLT": -39.768,
        "ID-SPN": -39.79,
        "LearnSPN": -40.50,
        "continuous mixture": -39.02,
    },
    "jester": {
        "LearnPSDD, ensemble": -51.29,
        "HCLT": -52.376,
        "ID-SPN": -52.86,
        "continuous mixture": -51.93,
    },
    "bnetflix": {
        "LearnPSDD, ensemble": -55.71,
        "HCLT": -56.248,
        "ID-SPN": -56.36,
        "continuous mixture": -55.31,
    },
    "accidents": {
        "WinMine": -26.32,
        "HCLT": -26.736,
        "ID-SPN": -26.98,
        "ACMN": -27.11,
        "continuous mixture": -28.69,
    },
    "dna": {"HCLT": -79.051, "ACMN": -80.03, "ID-SPN": -81.21, "LearnSPN": -82.52},
    "pumsb_star": {"ID-SPN": -22.41, "ACMN": -23.55, "HCLT": -23.650},
    "bbc": {"ID-SPN": -248.93, "HCLT": -249.049, "continuous mixture": -240.19},
}


def best_published(name):
    """The best model of a set, and its figure."""
    return max(PUBLISHED[name].items(), key=lambda item: item[1])
