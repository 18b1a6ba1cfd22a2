"""One kind of weight of a layer: a matrix or a vector, how often it is there, and how ranks share it."""

from __future__ import annotations

from attrs import frozen

from linkbound.domain.catalog import ModelPart, WeightSplit


@frozen(kw_only=True)
class Weight:
    """`copies` matrices of `rows` by `columns` with `values` more beside each (bias, vectors).

    A token uses `active_copies` of them. `plain`: quantisers leave it alone unless they name it.
    """

    module: str
    part: ModelPart
    split: WeightSplit
    rows: int = 0
    columns: int = 0
    values: int = 0
    copies: int = 1
    active_copies: int = 1
    plain: bool = False

    @property
    def values_of_one(self) -> int:
        """Parameters of one copy."""
        return self.rows * self.columns + self.values

    @property
    def parameter_count(self) -> int:
        """Parameters of all copies."""
        return self.copies * self.values_of_one

    @property
    def active_parameter_count(self) -> int:
        """Parameters that a token uses."""
        return self.active_copies * self.values_of_one


def matrix(
    module: str,
    part: ModelPart,
    rows: int,
    columns: int,
    *,
    bias: bool = False,
    split: WeightSplit = WeightSplit.SLICED,
    active_copies: int = 1,
    plain: bool = False,
) -> Weight:
    """A matrix of `rows` outputs and `columns` inputs, with a bias for each output or none."""
    return Weight(
        module=module,
        part=part,
        split=split,
        rows=rows,
        columns=columns,
        values=rows if bias else 0,
        active_copies=active_copies,
        plain=plain,
    )


def vector(
    module: str,
    part: ModelPart,
    values: int,
    *,
    split: WeightSplit = WeightSplit.REPLICATED,
    active_copies: int = 1,
) -> Weight:
    """`values` parameters that are no matrix."""
    return Weight(module=module, part=part, split=split, values=values, active_copies=active_copies, plain=True)
