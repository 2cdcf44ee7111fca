"""What ``help()`` and editors show of a class that hands its arguments on to its base."""

import inspect
from typing import TypeVar

Class = TypeVar("Class", bound=type)

_SET_BY_CLASSES = ("cell", "forget_bias")


def shows_arguments(cls: Class) -> Class:
    """Gives a class the arguments of its base beside its own by name, in its signature and in its docstring, where these stand
    in the place of the line "Args: those of ``Base``..."."""
    base = cls.__mro__[1]
    of_base = [p for p in inspect.signature(base).parameters.values() if p.name not in _SET_BY_CLASSES]
    for p in inspect.signature(vars(cls)["__init__"]).parameters.values():
        if p.name == "nonlinearity":  # stands where torch has it
            of_base.insert(3, p.replace(kind=inspect.Parameter.POSITIONAL_OR_KEYWORD, default="tanh"))
        elif p.kind is inspect.Parameter.KEYWORD_ONLY:
            of_base.append(p)
    cls.__signature__ = inspect.Signature(of_base)  # type: ignore[attr-defined]
    if cls.__doc__ and base.__doc__:  # Python -OO has none
        begin, _, rest = inspect.cleandoc(cls.__doc__).partition(f"Args: those of ``{base.__name__}``")
        listed = inspect.cleandoc(base.__doc__).partition("Args:\n")[2]
        arguments, _, further = listed.partition("\n\n")
        arguments = arguments.partition("    cell, forget_bias:")[0].rstrip()
        cls.__doc__ = f"{begin}Args:\n{arguments}{rest.removeprefix(', and')}\n\n{further}"
    return cls
