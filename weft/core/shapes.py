"""Shape annotations and the one table of letters they are written in.

| letter | axis                                   |
|--------|----------------------------------------|
| B      | batch rows                             |
| T      | time steps of the sequence in hand     |
| S      | time steps of the source (keys)        |
| D      | model width                            |
| N      | attention heads                        |
| E      | width of one head                      |
| U      | hidden units of a recurrent layer      |
| V      | vocabulary                             |
| L      | layers                                 |
| K      | kernel width of a convolution          |
| C      | capacity of a cache, channels of a series |
| P      | tokens of a forced prefix              |
| R      | rows kept, source rows of a search      |
| W      | lanes of one row: a beam, samples       |

`Float[Tensor, "B T D"]` is free in production; the tests check it on every call.
"""

from jaxtyping import Bool, Float, Int
from torch import Tensor

__all__ = ["Bool", "Float", "Int", "Tensor"]
