"""What the site needs beyond MkDocs: pages and links that leave docs/, and lists as code hosts read them.

Documents link to each other as on a code host: relative, to any file of the repository. In the site such a
link leads to a page where the file is one, and else to the file in the repository (repo_url of mkdocs.yml).
A link to a file that does not exist fails the build, and so does a page that would ask another host for
something.
"""

import logging
import os
import posixpath
import re
from pathlib import Path
from urllib.parse import unquote

from markdown.extensions import Extension
from markdown.preprocessors import Preprocessor
from markdown.treeprocessors import Treeprocessor
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File

REPOSITORY = Path(__file__).resolve().parents[2]
BRANCH = "main"
log = logging.getLogger("mkdocs.hooks.links")  # a warning ends a strict build

source_of = {}  # where each page lies in the repository, by its place in the site
place_of = {}  # the other way round
current = None  # the page that is being rendered, by its place in the repository


def on_config(config):
    # No "build of <date>" in sitemap: equal sources make an equal site.
    os.environ.setdefault("SOURCE_DATE_EPOCH", "0")
    config.nav = expand(config.nav, Path(config.docs_dir))
    config.markdown_extensions.append(AsOnACodeHost(config.repo_url))
    return config


def expand(nav, docs):
    """A folder in nav stands for its pages, the README first."""
    if isinstance(nav, dict):
        return {title: expand(entry, docs) for title, entry in nav.items()}
    if isinstance(nav, list):
        return [expand(entry, docs) for entry in nav]
    if not nav.endswith("/"):
        return nav
    pages = sorted((docs / nav).glob("*.md"), key=lambda page: (page.name != "README.md", page.name))
    return [nav + page.name for page in pages]


def on_files(files, config):
    for source, place in config.extra["pages"].items():
        files.append(File.generated(config, place, content=(REPOSITORY / source).read_text()))
        source_of[place] = source
    for file in files:
        if not file.generated_by:
            source_of[file.src_uri] = "docs/" + file.src_uri
    place_of.update((source, place) for place, source in source_of.items())
    return files


def on_page_markdown(markdown, page, config, files):
    global current
    current = page.file.src_uri
    return markdown


class AsOnACodeHost(Extension):
    def __init__(self, repository):
        super().__init__()
        self.repository = repository.rstrip("/")

    def extendMarkdown(self, md):
        md.preprocessors.register(Lists(md), "lists-after-text", 20)  # after fenced code, 25
        md.treeprocessors.register(Rewrite(md, self.repository), "repository-links", 5)  # before MkDocs' own, 0


class Lists(Preprocessor):
    """A list may follow a line of text at once, as in CommonMark; Python-Markdown wants a blank line."""

    def run(self, lines):
        out, block = [], ""  # block: the first line since the last blank one
        for line in lines:
            text = block and not re.match(r"[-*>|#] ?|\d+\. |\s", block)
            if text and re.match(r"[-*] |1\. ", line):
                out.append("")
                block = ""
            block = (block or line) if line.strip() else ""
            out.append(line)
        return out


class Rewrite(Treeprocessor):
    def __init__(self, md, repository):
        super().__init__(md)
        self.repository = repository

    def run(self, root):
        for element in root.iter():
            attribute = {"a": "href", "img": "src"}.get(element.tag)
            if attribute and element.get(attribute):
                element.set(attribute, self.rewritten(element.get(attribute)))

    def rewritten(self, link):
        path, sharp, anchor = link.partition("#")
        if not path or ":" in path or path.startswith("/"):
            return link
        source = posixpath.normpath(posixpath.join(posixpath.dirname(source_of[current]), unquote(path)))
        if not source.startswith("..") and source in place_of:
            return posixpath.relpath(place_of[source], posixpath.dirname(current) or ".") + sharp + anchor
        if source.startswith("..") or not (REPOSITORY / source).exists():
            log.warning("%s links to %s, and there is no such file", source_of[current], link)
            return link
        kind = "tree" if (REPOSITORY / source).is_dir() else "blob"
        return f"{self.repository}/{kind}/{BRANCH}/{source}{sharp}{anchor}"


FOREIGN = re.compile(r"""<(?:script|img|iframe|source|video|audio|embed|object)\b[^>]*?\b(?:src|data)=["']?(?:https?:)?//[^"'\s>]+"""
                     r"""|<link\b(?=[^>]*\brel=["']?(?:stylesheet|preload|preconnect|icon|modulepreload))[^>]*?\bhref=["']?(?:https?:)?//[^"'\s>]+""")


def on_post_page(output, page, config):
    if match := FOREIGN.search(output):
        raise PluginError(f"{page.file.src_uri} would ask another host: {match[0]}")
    return output
