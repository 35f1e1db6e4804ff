"""Is numpy in the page of the playground, where there is none. The classes of tasks are imported with it, and know the
names of their splits and metrics. Nothing can be computed."""


class _Name:
    """A name of numpy, as in annotations."""

    def __getattr__(self, name: str) -> "_Name":
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __getitem__(self, key: object) -> "_Name":
        return self

    def __or__(self, other: object) -> "_Name":
        return self

    __ror__ = __or__

    def __call__(self, *arguments: object, **options: object) -> object:
        raise ModuleNotFoundError("there is no numpy in the browser", name="numpy")


def attribute(name: str) -> object:
    """Returns a name of the module.

    Raises:
        AttributeError: Python asks for a part of the module itself."""
    return getattr(_Name(), name)
