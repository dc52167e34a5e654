"""MNIST with 100 and with 1,000 labels: do the other rows help?

Of 60,000 rows some have a label, of each class equally many. `RBMClassifier` learns from these
alone and from all, and so do classifiers of scikit-learn: logistic regression and a network,
alone and in `SelfTrainingClassifier`, and `LabelSpreading` along a graph of nearest
neighbours. The latter, and the network in `SelfTrainingClassifier`, learn from fewer unlabelled
rows (``--spread-rows``, ``--self-rows``): the neighbours of all test rows among all rows, and
ten networks on all rows, would take too long. Settings are the same for 100 and 1,000 labels and
were chosen on the validation rows of other seeds.

Each fit is kept in ``rbm_semi_supervised.csv`` when it is done; those that are there are not made
again without ``--again``. For example

    python bench_semi_supervised.py --data DIR
    python bench_semi_supervised.py --data DIR --quick --output /tmp
"""
