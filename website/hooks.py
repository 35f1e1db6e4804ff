"""What MkDocs calls to build the site: the pages of the repository and of the reference, and the playground."""

from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.utils import get_relative_url

from archlang.errors import ArchlangError
from archlang.play.build import build
from website.links import with_links
from website.pages import ROOT, site
from website.reference import reference


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the pages and the pictures of the repository.

    Raises:
        PluginError: a link leads nowhere."""
    pages = site(reference())
    if pages.broken:
        raise PluginError("\n".join(["these links lead nowhere:", *pages.broken]))
    for path in pages.copied:
        files.append(File(path, str(ROOT), config.site_dir, config.use_directory_urls))
    for address, text in pages.pages.items():
        file = File.generated(config, address, content=text)
        if config.extra["playground"]:
            file = File.generated(config, address, content=with_links(text, get_relative_url("playground/", file.url)))
        files.append(file)
    return files


def on_post_build(config: MkDocsConfig) -> None:
    """Builds the playground into the site, if the programs of the pages lead there.

    Raises:
        PluginError: npm is missing, or cannot fetch Pyodide."""
    if config.extra["playground"]:
        try:
            build(Path(config.site_dir) / "playground")
        except ArchlangError as error:
            raise PluginError(str(error)) from error
