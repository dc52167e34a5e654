"""A directive that shows a Markdown file of the repository as part of a page.

``.. markdown:: ../benchmarks/README.md`` takes headings, paragraphs, lists, tables, indented
code, images, and code, bold, emphasis and links within a line; comments are left out. Files that
are linked can be downloaded. With ``:section: In short`` it is the text below that heading alone.
"""

import re
from pathlib import Path

from docutils.parsers.rst import directives
from sphinx.util.docutils import SphinxDirective

INLINE = re.compile(
    r"(?P<code>`[^`]+`)"
    r"|(?P<image>!\[(?P<alt>[^\]]*)\]\((?P<source>[^)]+)\))"
    r"|\[(?P<text>[^\]]+)\]\((?P<target>[^)]+)\)"
    r"|\*\*(?P<bold>.+?)\*\*"
    r"|(?<![\w*])\*(?P<emphasis>\w[^*]*)\*(?!\w)"
)
UNDERLINES = "=-~"


def escaped(text):
    """Protect what reStructuredText would take for markup."""
    return re.sub(r"([\\*`_|])", r"\\\1", text)


def inline(text, folder):
    """Translate code, bold and links within a line."""
    parts, end = [], 0
    for match in INLINE.finditer(text):
        parts.append(escaped(text[end : match.start()]))
        end = match.end()
        if match["code"]:
            parts.append(rf"\ `{match['code']}`\ ")
        elif match["image"]:
            parts.append(f"\n\n.. image:: {folder}/{match['source']}\n   :alt: {match['alt']}\n\n")
        elif match["bold"]:
            # Markup does not nest: code within bold is shown as code.
            bold = match["bold"]
            parts.append(inline(bold, folder) if "`" in bold else rf"\ **{escaped(bold)}**\ ")
        elif match["emphasis"]:
            parts.append(rf"\ *{escaped(match['emphasis'])}*\ ")
        else:
            name, target = match["text"].replace("`", ""), match["target"]
            page = re.fullmatch(r"doc/(.*)\.rst", target)
            if page:
                parts.append(rf"\ :doc:`{escaped(name)} </{page[1]}>`\ ")
            elif "://" in target:
                parts.append(rf"\ `{escaped(name)} <{target}>`__\ ")
            else:
                parts.append(rf"\ :download:`{escaped(name)} <{folder}/{target}>`\ ")
    return "".join(parts) + escaped(text[end:])


def table(lines, folder):
    """Translate a table to a list-table."""
    rows = [re.split(r"(?<!\\)\|", line.strip().strip("|")) for line in lines]
    out = ["", ".. list-table::", "   :header-rows: 1", "   :widths: auto", ""]
    for row in [rows[0], *rows[2:]]:
        # `strip("|")` takes empty cells at the end away.
        cells = [inline(cell.strip(), folder) for cell in row] + [""] * (len(rows[1]) - len(row))
        out += [f"   {'*' if k == 0 else ' '} - {cell}" for k, cell in enumerate(cells)]
    return [*out, ""]


def to_rst(text, folder):
    """Translate a page, without its title; `folder` is put before the paths of files."""
    out = []
    for block in re.split(r"\n{2,}", text.strip()):
        lines = block.split("\n")
        heading = re.match(r"(#+) (.*)", block)
        if heading:
            if len(heading[1]) > 1:
                title = inline(heading[2], folder).replace("\\ ", "")
                out += [title, UNDERLINES[len(heading[1]) - 1] * len(title)]
            lines = lines[1:]
        if not lines:
            pass
        elif lines[0].startswith("|"):
            out += table(lines, folder)
        elif lines[0].startswith("    "):
            out += ["::", "", *lines]
        elif lines[0].startswith("* "):
            joined = re.sub(r"\n +", " ", "\n".join(lines))
            out += [f"* {inline(item[2:], folder)}" for item in joined.split("\n")]
        else:
            out += inline(" ".join(lines), folder).split("\n")
        out.append("")
    return "\n".join(out)


def section_of(text, title):
    """Return what stands below a heading of the second level, up to the next one."""
    parts = re.split(r"^## (.*)$", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))[title]


class Markdown(SphinxDirective):
    """Show a Markdown file, given by its path from the document, or a section of it."""

    required_arguments = 1
    option_spec = {"section": directives.unchanged_required}

    def run(self):
        """Parse the translation in place."""
        path = Path(self.env.doc2path(self.env.docname)).parent / self.arguments[0]
        self.env.note_dependency(path)
        folder = str(Path(self.arguments[0]).parent)
        text = re.sub(r" ?<!--.*?-->", "", path.read_text(encoding="utf-8"))
        if "section" in self.options:
            text = section_of(text, self.options["section"])
        text = to_rst(text, folder)
        return self.parse_text_to_nodes(text, allow_section_headings=True)


def setup(app):
    """Register the directive."""
    app.add_directive("markdown", Markdown)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
