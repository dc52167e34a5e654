"""Results as tables of pandas."""

import numpy as np


def parameter_frame(names, columns):
    """A row for each parameter, with its name as the index.

    Parameters
    ----------
    names : ndarray of str of shape (n_parameters,)
    columns : dict of ndarray of shape (n_parameters,)

    Returns
    -------
    frame : pandas.DataFrame
    """
    pandas = import_pandas("such as `estimate` and `std_err`")
    return pandas.DataFrame(columns, index=pandas.Index(names, name="parameter"))


def pair_frame(feature_names, matrices):
    """A row for each two variables, with their names as the index.

    Parameters
    ----------
    feature_names : ndarray of str of shape (n_features,)
    matrices : dict of ndarray of shape (n_features, n_features)

    Returns
    -------
    frame : pandas.DataFrame
    """
    pandas = import_pandas("matrices of pairs")
    j, k = np.triu_indices(len(feature_names), 1)
    names = [feature_names[j], feature_names[k]]
    return pandas.DataFrame(
        {name: matrix[j, k] for name, matrix in matrices.items()},
        index=pandas.MultiIndex.from_arrays(names, names=["one", "other"]),
    )


def import_pandas(attributes):
    """The package; where it is not installed, an error that says what is there without it."""
    try:
        import pandas
    except ImportError as error:
        raise ImportError(
            "to_frame needs pandas, which is not installed: run `pip install pandas`, or use "
            f"the attributes, {attributes}."
        ) from error
    return pandas
