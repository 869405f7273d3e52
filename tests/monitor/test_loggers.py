"""A training loop of 20 steps with each logger, read back by the logger's own reader."""

from __future__ import annotations

import json
import struct
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import revisit
from revisit.core import UsageError
from tests.monitor.scenes import METRICS, forgetting, still, to_floats, truth

STEPS, EVERY = 20, 19  # checkpoints at the first and the last step
WITH_INTERVAL = ("revisit/memory", "revisit/motion_amount")


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> dict[int, revisit.Checkpoint]:
    """A loop of 20 steps of a model that learns to come back: what it makes is scored at two of them."""
    monitor = revisit.Monitor(
        layout="TCHW", value_range=(-1, 1), metrics=METRICS, clips=2, out=tmp_path_factory.mktemp("monitor")
    )
    found = {}
    weight = np.zeros(1)
    for step in range(STEPS):
        weight += 0.1 * (2 - weight)  # towards what it should be
        if step % EVERY:
            continue
        for seed in range(3):
            make = (truth if weight > 1 else forgetting) if seed else still
            if monitor.wants(str(seed)):
                monitor.update(to_floats(make(seed)), name=str(seed), reference=truth(seed))
        found[step] = monitor.compute(step)
        monitor.reset()
    assert list(found) == [0, 19]
    return found


def test_the_loop_learns(checkpoints) -> None:
    assert checkpoints[0].memory.mean < checkpoints[19].memory.mean
    assert [len(one.results.cases) for one in checkpoints.values()] == [2, 2]
    assert all(one.pictures() and one.report is not None and one.report.is_file() for one in checkpoints.values())


def test_tensorboard(checkpoints, tmp_path: Path) -> None:
    pytest.importorskip("tensorboard", reason="tensorboard is not installed")
    writers = pytest.importorskip("torch.utils.tensorboard", reason="torch is not installed")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboard.plugins.custom_scalar import layout_pb2

    with writers.SummaryWriter(str(tmp_path)) as writer:
        for step, checkpoint in checkpoints.items():
            checkpoint.log(writer, step)
    log = EventAccumulator(str(tmp_path), size_guidance={"scalars": 0, "images": 0, "tensors": 0})
    log.Reload()
    for name in (f"{name}{end}" for name in WITH_INTERVAL for end in ("", "_low", "_high")):
        written = {event.step: event.value for event in log.Scalars(name)}
        assert written == {step: np.float32(one.scalars()[name]) for step, one in checkpoints.items()}
    pictures = log.Images("revisit/worst_1")
    assert [picture.step for picture in pictures] == [0, 19]
    assert (pictures[0].height, pictures[0].width) == checkpoints[0].pictures()[0].rgb.shape[:2]
    texts = log.Tensors("revisit/report/text_summary")
    assert checkpoints[19].report.as_uri() in texts[-1].tensor_proto.string_val[0].decode()
    (charts,) = log.Tensors("custom_scalars__config__")
    layout = layout_pb2.Layout.FromString(charts.tensor_proto.string_val[0])
    bands = {chart.title: chart.margin.series[0] for category in layout.category for chart in category.chart}
    assert (bands["memory"].value, bands["memory"].lower) == ("revisit/memory", "revisit/memory_low")


@pytest.mark.long
def test_wandb(checkpoints, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wandb = pytest.importorskip("wandb", reason="wandb is not installed")
    pytest.importorskip("PIL", reason="Pillow, which W&B's pictures need, is not installed")
    for name in ("WANDB_DIR", "WANDB_CACHE_DIR", "WANDB_CONFIG_DIR", "WANDB_DATA_DIR"):
        monkeypatch.setenv(name, str(tmp_path))
    with wandb.init(mode="offline", project="test", dir=str(tmp_path), settings={"silent": True}) as run:
        for step, checkpoint in checkpoints.items():
            checkpoint.log(run, step)
    wandb.teardown()
    (file,) = tmp_path.rglob("*.wandb")
    deadline = time.monotonic() + 60  # the process that writes it may be slower than this one
    while not any(record.HasField("exit") for record in wandb_records(file)) and time.monotonic() < deadline:
        time.sleep(0.1)
    history = {}
    for record in wandb_records(file):
        if record.HasField("history"):
            items = {item.key or "/".join(item.nested_key): json.loads(item.value_json) for item in record.history.item}
            history[items["_step"]] = items
    assert list(history) == [0, 19]
    for step, items in history.items():
        for name in (f"{name}{end}" for name in WITH_INTERVAL for end in ("", "_low", "_high")):
            assert items[name] == checkpoints[step].scalars()[name]
        picture = checkpoints[step].pictures()[0]
        assert items["revisit/worst_1/caption"] == picture.caption
        assert items["revisit/worst_1/width"] == picture.rgb.shape[1]
        assert (file.parent / "files" / items["revisit/worst_1/path"]).is_file()
        page = (file.parent / "files" / items["revisit/report/path"]).read_text()
        assert checkpoints[step].report.as_uri() in page


def wandb_records(file: Path) -> Iterator:
    """Records of W&B's offline file: its own classes, in the framing of LevelDB's log (blocks of 32 KiB)."""
    from wandb.proto.wandb_internal_pb2 import Record

    content, at, parts = file.read_bytes(), 7, b""  # after ":W&B", a number and the version
    assert content.startswith(b":W&B")
    while at + 7 <= len(content):
        if 32768 - at % 32768 < 7:  # no room for a header: the block is filled up
            at += 32768 - at % 32768
            continue
        _, size, kind = struct.unpack("<IHB", content[at : at + 7])
        parts += content[at + 7 : at + 7 + size]
        at += 7 + size
        if kind in (1, 4):  # whole, or the last part
            yield Record.FromString(parts)
            parts = b""


@pytest.mark.long
def test_mlflow(checkpoints, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("mlflow", reason="mlflow is not installed")
    monkeypatch.setenv("MLFLOW_ENABLE_ASYNC_LOGGING", "false")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.chdir(tmp_path)
    from mlflow.tracking import MlflowClient

    client = MlflowClient(tracking_uri=(tmp_path / "store").as_uri())
    run = client.create_run(client.create_experiment("test"))
    for step, checkpoint in checkpoints.items():
        checkpoint.log((client, run.info.run_id), step)
    reader = MlflowClient(tracking_uri=(tmp_path / "store").as_uri())
    for name in (f"{name}{end}" for name in WITH_INTERVAL for end in ("", "_low", "_high")):
        written = {metric.step: metric.value for metric in reader.get_metric_history(run.info.run_id, name)}
        assert written == {step: one.scalars()[name] for step, one in checkpoints.items()}
    images = [file.path for file in reader.list_artifacts(run.info.run_id, "images")]
    assert sum(path.endswith(".png") for path in images) == sum(len(one.pictures()) for one in checkpoints.values())
    assert reader.get_run(run.info.run_id).data.tags["revisit.report"] == checkpoints[19].report.as_uri()


def test_a_logger_that_nobody_knows(checkpoints) -> None:
    with pytest.raises(UsageError, match="dict is no logger that is known"):
        checkpoints[0].log({}, 0)


@pytest.mark.long  # Lightning alone takes eight seconds to import
def test_lightning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """20 steps, a validation every tenth: ModelCheckpoint keeps the one that remembers, and names the clips."""
    torch = pytest.importorskip("torch")
    lightning = pytest.importorskip("lightning.pytorch", reason="lightning is not installed")
    from lightning.pytorch.callbacks import ModelCheckpoint
    from lightning.pytorch.loggers import CSVLogger, TensorBoardLogger

    monkeypatch.chdir(tmp_path)

    class Model(lightning.LightningModule):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.zeros(1))

        def training_step(self, batch, index):
            return ((self.weight - 2) ** 2).sum()

        def validation_step(self, batch, index):
            return None

        def configure_optimizers(self):
            return torch.optim.SGD([self.weight], 0.04)

        def samples(self):
            make = truth if self.weight > 1.3 else forgetting
            for seed in (1, 2):
                yield {"name": str(seed), "frames": to_floats(make(seed)), "reference": truth(seed)}

    monitor = revisit.Monitor(layout="TCHW", value_range=(-1, 1), metrics=METRICS)
    keeps = ModelCheckpoint(tmp_path / "kept", monitor="revisit/memory", mode="max", filename="{step}")
    loggers = [TensorBoardLogger(tmp_path, "board"), CSVLogger(tmp_path, "csv")]
    trainer = lightning.Trainer(
        max_steps=STEPS, val_check_interval=10, check_val_every_n_epoch=None, accelerator="cpu", logger=loggers,
        callbacks=[revisit.lightning_callback(monitor, Model.samples), keeps], enable_progress_bar=False,
        enable_model_summary=False,
    )  # fmt: skip
    data = torch.utils.data.DataLoader(torch.zeros(STEPS, 1))
    trainer.fit(Model(), data, torch.utils.data.DataLoader(torch.zeros(1, 1)))
    assert Path(keeps.best_model_path).name == "step=20.ckpt"
    kept = torch.load(keeps.best_model_path, weights_only=True)["callbacks"]
    assert {"names": ["1", "2"], "metric": "return_consistency"} in kept.values()

    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    log = EventAccumulator(loggers[0].log_dir)
    log.Reload()
    assert [event.step for event in log.Scalars("revisit/memory")] == [10, 20]
    assert "revisit/worst_1" in log.Tags()["images"]
    rows = (Path(loggers[1].log_dir) / "metrics.csv").read_text().splitlines()
    assert "revisit/memory" in rows[0] and len(rows) == 3
