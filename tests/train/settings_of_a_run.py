"""Training settings for tests: the defaults of adamw, for 100 steps."""

from archlang.plan.from_file import rebind
from archlang.plan.plan import BoundExtern
from archlang.train.settings import Settings

SETTINGS = Settings(rebind("train", BoundExtern("adamw", "torch.optim:AdamW", {"steps": 100}))[0].statics)
