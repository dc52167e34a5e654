"""Long lists of parameters in three groups: what to begin with, training, and what experts set.

numpydoc lists parameters as the docstring does. Here a list of `MANY` or more gets three headings;
the docstring stays plain.
"""

from numpydoc.docscrape_sphinx import SphinxDocString

MANY = 15
GROUPS = {
    "Start here": "n_components max_components hidden_layer_sizes columns generative penalty alpha "
    "edges nodewise early_stopping random_state",
    "Training": "learning_rate batch_size max_iter tol init missing cv class_weight scoring "
    "track_likelihood warm_start n_jobs verbose",
}
GROUP_OF = {name: heading for heading, names in GROUPS.items() for name in names.split()}
list_parameters = SphinxDocString._str_param_list


def grouped(docstring, name, *args, **kwargs):
    """List parameters below the headings of their groups."""
    parameters = docstring[name]
    if name != "Parameters" or len(parameters) < MANY:
        return list_parameters(docstring, name, *args, **kwargs)
    lines = [*docstring._str_field_list(name), ""]
    for heading in [*GROUPS, "For experts"]:
        docstring[name] = [p for p in parameters if GROUP_OF.get(p.name, "For experts") == heading]
        lines += docstring._str_indent([f".. rubric:: {heading}", ""])
        lines += list_parameters(docstring, name, *args, **kwargs)[2:]
    docstring[name] = parameters
    return lines


def setup(app):
    """Replace the method of numpydoc."""
    SphinxDocString._str_param_list = grouped
    return {"parallel_read_safe": True, "parallel_write_safe": True}
