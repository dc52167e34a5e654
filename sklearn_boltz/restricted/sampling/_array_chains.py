"""Markov chains step by step, of which the states are arrays of any library."""

from sklearn_boltz.numerics._arrays import as_type, namespace_of, numpy_dtype, widened, zeros


def move_chains(model, V, n_steps, stream, H=None):
    """Make transitions of one Markov chain a row, with the random numbers of `run_chains`.

    Parameters
    ----------
    model : Model
    V : array of shape (n_rows, n_visible)
        Where the chains are. Not looked at if `H` is given.
    n_steps : int
    stream : Stream
    H : array of shape (n_rows, n_hidden), default=None
        Where the chains start, if the first transition samples the visible units only.

    Returns
    -------
    V : array of shape (n_rows, n_visible)
        The states after the last transition.
    H : array of shape (n_rows, n_hidden)
        E[h | V].
    """
    for _ in range(n_steps):
        if H is None:
            H = model.hidden.sample(model.hidden_field(V), stream)
        elif model.visible.is_binary and model.hidden.is_binary:
            stream.take(1)  # the step that `gibbs_chains` leaves out
        V, H = model.visible.sample(model.visible_field(H), stream), None
    return V, model.mean_hidden(V)


def moves_of_chains(model, V, clamped, n_steps, stream, first_row=0):
    """Make transitions with some values clamped.

    Parameters
    ----------
    model : Model
    V : array of shape (n_rows, n_visible)
        Where the chains start.
    clamped : array of bool that broadcasts with V
        Which values stay as they are.
    n_steps : int
    stream : Stream
    first_row : int
        What the random numbers take for the number of the first chain.

    Yields
    ------
    field : array of shape (n_rows, n_visible)
        Of the visible units in this transition.
    states : array of shape (n_rows, n_visible)
        After it.
    """
    xp, states = namespace_of(V), V
    for _ in range(n_steps):
        H = model.hidden.sample(model.hidden_field(states), stream, first_row)
        field = model.visible_field(H)
        states = xp.where(clamped, V, model.visible.sample(field, stream, first_row))
        yield field, states


def filled_by_chains(model, V, missing, how, n_steps, stream, free_energy=None):
    """Fill missing values of rows by chains with the others clamped.

    Parameters
    ----------
    model : Model
    V : array of shape (n_rows, n_visible)
        Missing entries are ignored.
    missing : array of bool of the same shape
    how : {"mean", "mode", "sample"}
        Means over the second half of the transitions; the most probable state that a chain has
        met; or the last one.
    n_steps : int
    stream : Stream
    free_energy : callable, default=None
        Of rows, which says how probable they are; None for that of the model.

    Returns
    -------
    filled : array of shape (n_rows, n_visible)
        Correct in the missing places.
    """
    xp, start = namespace_of(V), model.visible.mean(zeros(V, (1, V.shape[1])))
    V = xp.where(missing, start, as_type(V, numpy_dtype(start)))
    total, best, least = 0.0, V, None
    for step, (field, states) in enumerate(moves_of_chains(model, V, ~missing, n_steps, stream)):
        if how == "mean" and step >= n_steps // 2:
            total = total + widened(model.visible.mean(field))
        elif how == "mode":
            found = (free_energy or model.free_energy)(states)
            better = found == found if least is None else found < least
            least = found if least is None else xp.where(better, found, least)
            best = xp.where(better[:, None], states, best)
    if how == "mean":
        return total / (n_steps - n_steps // 2)
    return best if how == "mode" else states
