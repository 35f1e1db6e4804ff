"""Training settings for tests: the defaults of adamw, for 100 steps."""

from dataclasses import replace

from archlang.plan.from_file import rebind
from archlang.plan.plan import BoundExtern
from archlang.train.settings import Settings
from archlang.types.statics import StaticValue

SETTINGS = Settings(rebind("train", BoundExtern("adamw", "torch.optim:AdamW", {"steps": 100}))[0].statics)


def settings_with(settings: Settings = SETTINGS, /, **values: StaticValue) -> Settings:
    return replace(settings, statics={**settings.statics, **values})
