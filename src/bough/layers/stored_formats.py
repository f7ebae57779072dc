"""Matrices in the formats in which a checkpoint has them."""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Mapping
from itertools import groupby
from typing import Generic, Literal, TypeVar

from bough.errors import ModelError
from bough.layers.linear_method import LinearMethod, MethodChoice

StoredForm = Literal["int4", "uint4", "mxfp4", "int8", "float8"]
"""Quantised weights by what holds them: signed codes of 4 bits, codes from 0 to 15 with minimums, 4-bit floating point
(E2M1), any other whole numbers, 8-bit floating point."""

Method = TypeVar("Method", bound=LinearMethod)


def no_room(form: str) -> ModelError:
    """What a matrix raises that is to keep the codes of a checkpoint, at numbers that its form cannot hold exactly."""
    return ModelError(
        f"its matrix is held as {form}, the form of the checkpoint that the model was made for, and has no room for "
        f"these numbers as they are; start with the checkpoint that has them"
    )


class StoredFormats(MethodChoice, Generic[Method]):
    """Every matrix in the format that holds its weights as the checkpoint has them.

    A matrix of several projections gets the one that can hold all of them, and so do matrices that have to be alike.
    Those that need not be one matrix get as few as hold each as it is, or one, too.

    Attributes:
        recoded: matrices so far that are quantised here though the checkpoint does not quantise them.
    """

    def __init__(
        self,
        form: Callable[[str], StoredForm | None],
        methods: Mapping[StoredForm | None, Method],
        *,
        recodes: bool = False,
        apart: bool = False,
    ) -> None:
        """Args:
        form: of the weight of that name, ``None`` if it is not quantised.
        methods: of each form and of what is not quantised. Each can hold what those before it can; but mxfp4, which
            is the first, can be held beside others by int8 only.
        recodes: whether the method of what is not quantised quantises it.
        apart: whether projections are set apart where they need not be one matrix.
        """
        self._form = form
        self._prefixes: tuple[str, ...] = ("",)
        self._found: dict[tuple[str, ...], Method] = {}
        self._recodes, self._apart = recodes, apart
        self._methods = methods
        self._order = list(methods)
        self.recoded: list[str] = []

    def below(self, path: str) -> StoredFormats[Method]:
        return self.alike((path,))

    def alike(self, paths: Collection[str]) -> StoredFormats[Method]:
        child = copy.copy(self)
        child._prefixes = tuple(f"{prefix}{path}." for prefix in self._prefixes for path in paths)
        return child

    def for_matrix(self, names: Collection[str]) -> Method:
        paths = tuple(f"{prefix}{name}" for prefix in self._prefixes for name in names)
        if paths not in self._found:
            forms = {path: self._form(f"{path}.weight") for path in paths}
            if self._recodes:
                self.recoded += [path for path, form in forms.items() if form is None]
            kinds = set(forms.values())
            if "mxfp4" in kinds and len(kinds) > 1:
                kinds.add("int8")
            self._found[paths] = self._methods[max(kinds, key=self._order.index)]
        return self._found[paths]

    def for_precise(self, names: Collection[str]) -> Method:
        return self._methods[self._order[-1]]

    def matrices(self, names: Collection[str]) -> list[tuple[tuple[str, ...], LinearMethod]]:
        if not self._apart:
            return super().matrices(names)
        runs = groupby(names, key=lambda name: self.for_matrix((name,)))
        return [(tuple(run), method) for method, run in runs]
