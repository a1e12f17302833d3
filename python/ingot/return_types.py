"""The results of functions with several of them: named tuples."""
from collections import namedtuple


def _pair(name, first="values", second="indices"):
    return namedtuple(name, [first, second])


max = _pair("max")
min = _pair("min")
cummax = _pair("cummax")
cummin = _pair("cummin")
sort = _pair("sort")
topk = _pair("topk")
kthvalue = _pair("kthvalue")
median = _pair("median")
nanmedian = _pair("nanmedian")
mode = _pair("mode")
aminmax = _pair("aminmax", "min", "max")
slogdet = _pair("slogdet", "sign", "logabsdet")
