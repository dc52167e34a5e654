"""The look of the gallery's pictures, and thumbnails: a part of one that can be read, with a text.

sphinx-gallery shrinks whole pictures. Here an example has the number of a picture and a part of it:
left, top, right and bottom as shares of its width and height. Examples that are not in the table
keep what sphinx-gallery makes.
"""

import re
from pathlib import Path

import matplotlib.pyplot as plt
from PIL import Image

SIZE = (640, 440)
PARTS = {
    "plot_alignment_rbm": (1, (0.0, 0.0, 1.0, 0.48)),
    "plot_bird_strikes": (1, (0.0, 0.0, 0.62, 1.0)),
    "plot_contacts_from_alignment": (1, (0.0, 0.04, 0.56, 0.84)),
    "plot_fsll_density_digits": (3, (0.02, 0.0, 0.63, 0.585)),
    "plot_fsll_interactions": (1, (0.0, 0.56, 0.88, 0.93)),
    "plot_fvbm_network": (2, (0.0, 0.06, 0.84, 1.0)),
    "plot_infinite_rbm": (1, (0.0, 0.0, 0.5, 1.0)),
    "plot_neurons_maximum_entropy": (3, (0.495, 0.48, 1.0, 0.93)),
    "plot_rbm_from_bernoulli_rbm": (1, (0.0, 0.0, 1.0, 1.0)),
    "plot_rbm_grid_search": (1, (0.0, 0.0, 0.87, 1.0)),
    "plot_rbm_impute": (2, (0.0, 0.0, 0.55, 1.0)),
    "plot_rbm_ladder": (1, (0.0, 0.0, 1.0, 1.0)),
    "plot_rbm_learning_curves": (1, (0.0, 0.1, 0.49, 1.0)),
    "plot_rbm_receptive_fields": (2, (0.12, 0.0, 0.72, 0.76)),
    "plot_survey_weights": (2, (0.0, 0.0, 0.85, 1.0)),
    "plot_tables_fill": (1, (0.67, 0.0, 1.0, 1.0)),
    "plot_tables_odd_cell": (1, (0.0, 0.0, 0.69, 0.77)),
    "plot_tables_synthetic": (1, (0.0, 0.0, 0.747, 1.0)),
    "plot_tap_dbm": (3, (0.0, 0.0, 0.56, 1.0)),
    "plot_tap_denoising": (2, (0.0, 0.0, 0.56, 1.0)),
    "plot_tap_landscape": (2, (0.0, 0.09, 0.5, 0.63)),
    "plot_votes_ask": (2, (0.0, 0.0, 0.7, 1.0)),
    "plot_votes_network": (1, (0.0, 0.0, 0.85, 1.0)),
}

# A thumbnail without a text, up to the title that follows it.
THUMBNAIL = re.compile(
    r'(<div class="sphx-glr-thumbcontainer"[^>]*>\s*)<img alt=""([^>]*>)'
    r'(.*?<div class="sphx-glr-thumbnail-title">)([^<]*)',
    re.DOTALL,
)


def place(example):
    """Return where the gallery lists an example: sphinx-gallery would sort those of a section."""
    return (Path(__file__).parents[1] / "gallery.rst").read_text("utf-8").find(Path(example).name)


def use_style(gallery_conf, example):
    """Begin each example with the look of the gallery."""
    plt.rcdefaults()
    plt.style.use(Path(__file__).parents[1] / "gallery.mplstyle")


def thumbnail(picture, part):
    """Return a part of a picture, scaled to fit on white ground."""
    shares = zip(part, picture.size * 2, strict=True)
    cut = picture.crop([round(share * length) for share, length in shares]).convert("RGB")
    scale = min(SIZE[0] / cut.width, SIZE[1] / cut.height)
    cut = cut.resize((round(cut.width * scale), round(cut.height * scale)), Image.LANCZOS)
    ground = Image.new("RGB", SIZE, "white")
    ground.paste(cut, ((SIZE[0] - cut.width) // 2, (SIZE[1] - cut.height) // 2))
    return ground


def make_thumbnails(app):
    """Replace the thumbnails, once sphinx-gallery has made the pictures."""
    images = Path(app.srcdir) / "auto_examples" / "images"
    for example, (number, part) in PARTS.items():
        picture = images / f"sphx_glr_{example}_{number:03}_2_00x.png"
        target = images / "thumb" / f"sphx_glr_{example}_thumb.png"
        if picture.is_file() and target.is_file():
            with Image.open(picture) as whole:
                thumbnail(whole, part).save(target)


def describe_thumbnails(app, pagename, templatename, context, doctree):
    """Give thumbnails, which have an empty text from sphinx-gallery, the title of their example."""
    if "sphx-glr-thumbcontainer" in context.get("body", ""):
        context["body"] = THUMBNAIL.sub(
            r'\1<img alt="Thumbnail of the example: \4"\2\3\4', context["body"]
        )


def setup(app):
    """Come after sphinx-gallery."""
    app.connect("builder-inited", make_thumbnails, priority=900)
    app.connect("html-page-context", describe_thumbnails)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
