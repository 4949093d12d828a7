"""``carrel.spark_scores()``: score rows or pictures by a model of PyTorch in Spark's processes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from ...hub.errors import InvalidInput
from .columns import InputColumns, file_content, pictures, types_of
from .worker_models import BroadcastModel, broadcast


def spark_scores(
    frame: Any,
    model: Any,
    inputs: str | Sequence[str],
    *,
    output: str = "scores",
    size: tuple[int, int] | None = None,
    batch: int = 64,
    keep: Sequence[str] | None = None,
) -> Any:
    """Return a frame with the model's output for each row, as an array of numbers.

    The model is sent once and loaded once by each of Spark's Python processes, which compute with
    one thread each, in ``eval`` mode, without gradients and on the CPU.

    >>> photos = spark.read.format("binaryFile").option("pathGlobFilter", "*.jpg").load("photos")
    >>> scored = carrel.spark_scores(photos, model, "content", size=(64, 64), keep=["path"])

    Args:
        inputs: a column of encoded pictures (binary) or of paths of pictures on this machine
            (texts), of arrays or vectors of numbers, or a list of columns of numbers. Pictures
            become (batch, 3, height, width), from 0 to 1.
        output: name of the new column.
        size: height and width to which pictures are scaled.
        batch: rows that the model gets at a time.
        keep: columns to keep beside the new one; by default all but those of the inputs.

    Raises:
        InvalidInput: a column is missing or of another type, or the model has no weights.
        ModuleNotFoundError: PyTorch is missing.
    """
    if find_spec("torch") is None:
        raise ModuleNotFoundError(
            "carrel.spark_scores needs PyTorch. Install it with: pip install "
            "'carrel[execution]', or use the image spark.",
            name="torch",
        )
    if isinstance(batch, bool) or not isinstance(batch, int) or batch < 1:
        raise InvalidInput(f"batch is {batch!r}.", accepted="A whole number from 1.")
    columns = InputColumns.of(frame, inputs)
    if columns.kind == "columns" and "string" in types_of(frame, columns.names).values():
        raise InvalidInput(
            "The model cannot read texts.", accepted="Columns of numbers, arrays or pictures."
        )
    kept = _kept(frame, columns, output, keep)
    _check_model(model)
    scorer = _RowScorer(
        columns=columns,
        kept=kept,
        output=output,
        size=size,
        batch=batch,
        model=broadcast(frame.sparkSession, _on_the_cpu(model)),
    )
    others = [name for name in kept if name not in columns.names]
    chosen = frame.select(*(f"`{name}`" for name in others), *columns.expressions())
    return chosen.mapInPandas(scorer.scored, _schema(frame, kept, output))


def _kept(
    frame: Any, columns: InputColumns, output: str, keep: Sequence[str] | None
) -> tuple[str, ...]:
    kept = (
        tuple(name for name in frame.columns if name not in columns.names)
        if keep is None
        else tuple(keep)
    )
    types_of(frame, kept)
    if columns.kind == "vectors" and columns.names[0] in kept:
        raise InvalidInput(
            f"The vectors of {columns.names[0]} cannot be kept beside the scores.",
            accepted="Join the scores to the frame by a key.",
        )
    if output in kept:
        raise InvalidInput(
            f"The frame has a column {output!r} already.", accepted="Name another output."
        )
    return kept


def _schema(frame: Any, kept: Sequence[str], output: str) -> Any:
    from pyspark.sql.types import ArrayType, DoubleType, StructType  # noqa: PLC0415

    schema = StructType([frame.schema[name] for name in kept])
    return schema.add(output, ArrayType(DoubleType(), containsNull=False), nullable=False)


def _check_model(model: Any) -> None:
    import torch  # noqa: PLC0415 # found above

    if isinstance(model, type) and issubclass(model, torch.nn.Module):
        raise InvalidInput(f"{model.__name__} is a class.", accepted="A model: call the class.")
    if not isinstance(model, torch.nn.Module):
        raise InvalidInput(
            f"{type(model).__name__} is no model of PyTorch.", accepted="A torch.nn.Module."
        )
    name = type(model).__name__
    weights = [*model.parameters(), *model.buffers()]
    if not weights:
        raise InvalidInput(
            f"The model {name} has no weights: its state_dict is empty.",
            accepted="A model with weights.",
        )
    if any(torch.nn.parameter.is_lazy(each) for each in weights):
        raise InvalidInput(
            f"The model {name} has weights without values.",
            accepted="Call it once with a batch of your data.",
        )
    if any(each.is_meta for each in weights):
        raise InvalidInput(
            f"The model {name} has weights without values (device meta).",
            accepted="Load its weights first.",
        )


def _on_the_cpu(model: Any) -> Any:
    if all(each.device.type == "cpu" for each in (*model.parameters(), *model.buffers())):
        return model
    import copy  # noqa: PLC0415

    return copy.deepcopy(model).cpu()


@dataclass(frozen=True, slots=True, kw_only=True)
class _RowScorer:
    """What each Python process of Spark does with its rows."""

    columns: InputColumns
    kept: tuple[str, ...]
    output: str
    size: tuple[int, int] | None
    batch: int
    model: BroadcastModel

    def scored(self, frames: Iterator[Any]) -> Iterator[Any]:
        """Yield the kept columns with the scores, frame by frame."""
        import torch  # noqa: PLC0415 # not needed for the client

        torch.set_num_threads(1)
        model = self.model.load().eval()
        for frame in frames:
            found: list[Any] = []
            for begin in range(0, len(frame), self.batch):
                found += self._scores(model, frame.iloc[begin : begin + self.batch])
            yield frame[list(self.kept)].assign(**{self.output: found})

    def _scores(self, model: Any, rows: Any) -> list[Any]:
        import torch  # noqa: PLC0415 # not needed for the client

        kind = next((each.dtype for each in model.parameters() if each.is_floating_point()), None)
        with torch.inference_mode():
            scores = model(torch.as_tensor(self._values(rows)).to(kind or torch.float32))
            if not isinstance(scores, torch.Tensor) or scores.shape[:1] != (len(rows),):
                shape = tuple(getattr(scores, "shape", ())) or type(scores).__name__
                raise InvalidInput(
                    f"The model returned {shape} for {len(rows)} rows.",
                    accepted="A tensor with one row for each.",
                )
            return list(scores.reshape(len(rows), -1).double().numpy())

    def _values(self, rows: Any) -> Any:
        if self.columns.kind == "pictures":
            return pictures(rows[self.columns.names[0]], self.size)
        if self.columns.kind == "text":
            return pictures(map(file_content, rows[self.columns.names[0]]), self.size)
        values = self.columns.values(rows)
        # A copy: PyTorch warns of arrays that cannot be written to.
        return (values.to_numpy(float) if self.columns.kind == "columns" else values).copy()
