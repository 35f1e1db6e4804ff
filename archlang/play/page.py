"""The files of the playground's page. They load nothing from elsewhere, and the policy allows no script in the page."""

from collections.abc import Mapping

from archlang.reports.pages import asset, render

_TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css"}
ASSETS = ("playground.js", "playground.css", "picture.js", "picture.css", "picture_view.css")
_POLICY = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "img-src": "'self' data:",
    "connect-src": "'self'",
    "base-uri": "'none'",
    "form-action": "'none'",
}


def policy(**more: str) -> str:
    """Returns the content security policy of the page as a `meta` element has it, with further directives."""
    directives = {**_POLICY, **{name.replace("_", "-"): value for name, value in more.items()}}
    return "; ".join(f"{name} {value}" for name, value in directives.items())


# The policies as headers: a `meta` element cannot say who may frame a page.
HEADER_POLICY = "; ".join([policy(frame_src="'self'"), "frame-ancestors 'none'"])
# Of an inspection, which has scripts: its frame has an origin of its own, and reaches nothing.
FRAMED_POLICY = (
    "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "img-src data: blob:; frame-ancestors 'self'"
)


def page_files(service: str, content_policy: str) -> Mapping[str, str]:
    """Returns the text of each file of the page by its name. `service` is what answers it: `server` or `worker`."""
    page = render("playground.html", service=service, policy=content_policy)
    return {"index.html": str(page), **{name: str(asset(name)) for name in ASSETS}}


def content_type(name: str) -> str:
    """Returns the type of a file of the page."""
    return f"{_TYPES[name[name.rindex('.') :]]}; charset=utf-8"
