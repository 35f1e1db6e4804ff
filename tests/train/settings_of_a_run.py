"""Training settings for tests: the defaults of `optimizers.arch`, for 100 steps."""

from archlang.train.settings import Settings

SETTINGS = Settings(
    lr=1e-3,
    clip=0.0,
    clip_value=0.0,
    batch=32,
    batch_of="samples",
    sampling="bucketed",
    micro=0,
    steps=100,
    epochs=0,
    schedule="constant",
    warmup=0,
    cooldown=0.2,
    ponder=0.0,
    label_smoothing=0.0,
    supervise="last",
    halt="none",
    explore=0.0,
    select="valid.accuracy",
    every=0,
    patience=0,
    ema=0.0,
    sign_sgd=(),
    sign_lr=1e-2,
    sign_decay=0.0,
    rate="none",
    loss="task",
    metrics=(),
    charges={},
)
