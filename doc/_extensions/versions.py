"""The versions that the switcher offers: the builds in the folders beside the one that is built."""

import json
from pathlib import Path
from urllib.parse import urlsplit


def versions(site, address):
    """Return an entry for each folder with a build, the newest version first.

    The addresses of the entries are paths on the server, since the theme takes others as relative
    to the page that is read.
    """
    found = []
    for inventory in Path(site).glob("*/objects.inv"):
        version = inventory.read_bytes().split(b"\n")[2].decode().removeprefix("# Version: ")
        url = f"{urlsplit(address).path.rstrip('/')}/{inventory.parent.name}/"
        found.append({"version": version, "url": url})
    return sorted(found, key=lambda e: [int(n) for n in e["version"].split(".")], reverse=True)


def write(app, exception):
    """Write the list beside the folder of the build."""
    if exception is None and app.builder.name == "html":
        site = Path(app.outdir).parent
        entries = versions(site, app.config.project_urls.get("Documentation", ""))
        (site / "switcher.json").write_text(json.dumps(entries), encoding="utf-8")


def setup(app):
    """Come last: Sphinx writes the inventory at the end of a build."""
    app.add_config_value("project_urls", {}, "")
    app.connect("build-finished", write, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
