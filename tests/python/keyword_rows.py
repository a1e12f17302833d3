"""The calls of test_keywords.py: arguments by name, rows of functions that need others, and how classes are run."""
import inspect

import ingot

nn, F = ingot.nn, ingot.nn.functional
DROP = object()  # in `beside`: leaves an argument of the base call out


def t(*shape, low=-1.0, high=1.0):
    """Numbers between low and high, in no order."""
    n = 1
    for s in shape:
        n *= s
    return (ingot.arange(n, dtype=ingot.float32) * 7 % 11 / 11 * (high - low) + low).reshape(shape)


def ints(*values):
    return ingot.tensor(list(values))


def own(v):
    """A copy that a call may write to."""
    if type(v) is ingot.Tensor:
        return v.clone().detach()
    if type(v) in (tuple, list):
        return type(v)(own(x) for x in v)
    return v


def facts(v):
    """What can be seen of a result, as lists and strings."""
    if isinstance(v, ingot.Tensor):
        where = v.device.name
        return [type(v).__name__, v.dtype.name, list(v.shape), where, v.requires_grad, repr(v.detach().tolist()) if where == "cpu" else ""]
    if isinstance(v, (tuple, list)):
        return [type(v).__name__, *map(facts, v)]
    if isinstance(v, dict):
        return [[str(k), facts(x)] for k, x in v.items()]
    if isinstance(v, nn.Module):
        return [[type(m).__name__ for m in v.modules()], facts(v.state_dict())]  # not its repr: what it says is not what it does
    if isinstance(v, ingot.Generator):
        return [v.seed(), v.offset()]
    if isinstance(v, (int, float, str, bytes, type(None), ingot.dtype, ingot.device)):
        return [repr(v)]
    return [type(v).__name__]


def run_module(module, inputs, must):
    """Parameters, and the outputs in training and evaluation; without `must` the outputs may be errors."""
    out = [module]
    for training in (True, False):
        module.train(training)
        ingot.manual_seed(2)
        given = [own(x) for x in inputs]
        try:
            out += [facts(module(*given)), given]
        except Exception as e:
            if must:
                raise
            out.append(type(e).__name__)
    return out


X, Y, CUBE, WIDE = t(4, 4), t(4, 4, low=0.1, high=2.0), t(2, 4, 4), t(1, 1, 4, 4, 4)
WHOLE, OTHER_WHOLE, PLACES_4 = ints(5, 2, 7, 1), ints(1, 3, 2, 6), ints(2, 0, 3, 1)
MASK = ingot.tensor([True, False, True, True])
POSITIVE = X @ X.T + ingot.eye(4) * 3  # positive definite
VECTOR = t(4)
NANS = X * float("nan")
BASE = {
    "input": X, "self": X, "other": Y, "x": X, "y": Y, "A": POSITIVE, "B": X, "a": X, "b": Y, "obj": [1.5, 2.5], "data": [1.5, 2.5], "x1": X, "x2": Y,
    "dim": 0, "dim0": 0, "dim1": 1, "device": "cpu", "mat": X, "mat1": X, "mat2": Y, "vec": VECTOR, "vec1": VECTOR, "vec2": VECTOR + 1,
        "batch1": CUBE,
    "batch2": CUBE + 1, "tensor1": X, "tensor2": Y, "tensors": [X, Y], "end": Y, "weight": Y, "target": Y, "values": VECTOR, "exponent": 2.0,
        "mask": MASK,
    "index": PLACES_4, "source": t(4, 4, low=2.0, high=3.0), "src": t(4, 4, low=2.0, high=3.0), "size": (4, 4), "shape": (2, 8), "dims": (0, 1),
    "value": 0.25, "fill_value": 2.5, "k": 2, "n": 3, "p": 1.0, "tensor": X, "start": 1.0, "steps": 5, "low": 2, "high": 9, "row": 3, "col": 4,
    "repeats": 2, "chunks": 2, "q": 0.3, "maxnorm": 0.5, "max": 0.3, "min": -0.2, "indices_or_sections": 2, "split_size_or_sections": 1,
    "parameters": [X], "sections": 2, "indices": ints(0, 1, 2, 3).reshape(1, 4), "seed": 3, "num_samples": 2, "boundaries": ingot.tensor([-0.5, 0.0,
        0.5]),
    "output_size": 3, "kernel_size": 2, "destination": (1, 0), "sizes": (2, 2), "normalized_shape": (4,), "length": 2,
    "dtype": ingot.float64, "reduce": "sum",
}
OTHERS = {
    "dtype": [ingot.float64, ingot.float16, ingot.int32], "device": ["null"], "requires_grad": [True, False],
        "generator": [ingot.Generator().manual_seed(7)],
    "reduction": ["sum"], "rounding_mode": ["floor"], "approximate": ["tanh"], "interpolation": ["lower"], "side": ["right"], "size_average": [False],
    "reduce": ["prod", False], "indexing": ["xy"], "training": [True, False],
}


L, P, IMAGE, LINE = t(2, 6), t(2, 6, low=0.1, high=0.9), t(1, 4, 6, 6), t(1, 2, 8)
OLD = {"size_average": False, "reduce": False, "reduction": "sum"}
PAIR = (t(3, 4), t(3, 4, low=0.0, high=1.0))
SIGNS = ingot.tensor([1.0, -1.0, 1.0])
POOL = {"stride": 1, "padding": 1, "dilation": 2, "ceil_mode": True, "return_indices": True}
DROPOUT = {"p": 0.9, "training": False, "inplace": True}
INPLACE = {"inplace": True}

# nn.functional: name: (arguments, {keyword: another value}, keywords that every call needs).
CALLS = {
    "adaptive_max_pool1d": ((LINE, 3), {"return_indices": True}), "adaptive_max_pool2d": ((IMAGE, 3), {"return_indices": True}),
    "adaptive_max_pool3d": ((t(1, 1, 4, 4, 4), 2), {"return_indices": True}),
    "max_pool1d": ((LINE[..., :7], 2), POOL), "max_pool2d": ((IMAGE[..., :5], 2), POOL), "max_pool3d": ((t(1, 1, 5, 5, 5), 2), POOL),
    "alpha_dropout": ((L,), {"p": 0.9, "training": False, "inplace": True}, {"training": True}),
    "dropout": ((L,), DROPOUT), "dropout1d": ((t(1, 8, 4),), DROPOUT), "dropout2d": ((IMAGE,), DROPOUT), "dropout3d": ((t(1, 8, 2, 2, 2),), DROPOUT),
    "batch_norm": ((L, ingot.zeros(6), ingot.ones(6)), {"weight": t(6), "bias": t(6), "training": True, "momentum": 0.5, "eps": 1.0}),
    "bilinear": ((t(2, 3), t(2, 4), t(5, 3, 4)), {"bias": t(5)}),
    "group_norm": ((IMAGE, 2), {"weight": t(4), "bias": t(4), "eps": 1.0}),
    "instance_norm": ((IMAGE, ingot.zeros(4), ingot.ones(4)), {"running_mean": ingot.ones(4), "running_var": ingot.ones(4) * 2, "weight": t(4),
        "bias": t(4),
                                 "use_input_stats": False, "momentum": 0.5, "eps": 1.0}),
    "local_response_norm": ((IMAGE, 2), {"alpha": 1.0, "beta": 0.1, "k": 2.0}),
    "embedding": ((ints(0, 1), t(3, 2)), {"padding_idx": 1, "max_norm": 0.1, "scale_grad_by_freq": True,
                                             "sparse": True}),
    "one_hot": ((ints(0, 1),), {"num_classes": 5}),
    "pad": ((L, (1, 2)), {"mode": "reflect", "value": 3.0}),
    "unfold": ((IMAGE, 2), {"dilation": 2, "padding": 1, "stride": 2}),
    "fold": ((t(1, 4, 25), (19, 19), 2, 1, 0, 4), {"output_size": (20, 20), "kernel_size": 3, "dilation": 2, "padding": 1, "stride": 2}),
    "interpolate": ((IMAGE, 3), {"size": 4, "scale_factor": 2.0, "mode": "bilinear", "align_corners": True, "recompute_scale_factor": True,
                                 "antialias": True}),
    "upsample": ((IMAGE, 3), {"size": 4, "scale_factor": 2.0, "mode": "bilinear", "align_corners": True, "recompute_scale_factor": True,
                              "antialias": True}),
    "softmax": ((L,), {"dim": 0, "dtype": ingot.float64}), "log_softmax": ((L,), {"dim": 0, "dtype": ingot.float64}),
    "softmin": ((L,), {"dim": 0, "dtype": ingot.float64}), "softplus": ((L,), {"beta": 2.0, "threshold": 0.1}),
    "relu": ((L,), INPLACE), "silu": ((L,), INPLACE), "selu": ((L,), INPLACE), "relu6": ((L,), INPLACE), "mish": ((L,), INPLACE),
    "hardswish": ((L,), INPLACE), "hardsigmoid": ((L,), INPLACE),
    "leaky_relu": ((L,), {"negative_slope": 0.5, **INPLACE}), "elu": ((L,), {"alpha": 2.0, **INPLACE}),
    "celu": ((L,), {"alpha": 2.0, **INPLACE}), "hardtanh": ((L * 3,), {"min_val": -0.1, "max_val": 0.1, **INPLACE}),
    "threshold": ((L, 0.1, 5.0), INPLACE), "rrelu": ((L,), {"lower": 0.2, "upper": 0.9, "training": True, **INPLACE}),
    "hardshrink": ((L,), {"lambd": 0.1}), "softshrink": ((L,), {"lambd": 0.1}), "glu": ((L,), {"dim": 0}),
    "gumbel_softmax": ((L,), {"tau": 5.0, "hard": True, "dim": 0}), "normalize": ((L,), {"p": 1.0, "dim": 0, "eps": 10.0}),
    "cosine_similarity": ((L, P), {"dim": 0, "eps": 10.0}), "pairwise_distance": ((L, P), {"p": 1.0, "eps": 1.0, "keepdim": True}),
    "scaled_dot_product_attention": ((t(1, 2, 3, 4), t(1, 2, 3, 4), t(1, 2, 3, 4)), {
        "attn_mask": ingot.ones(3, 3, dtype=ingot.bool_).tril(), "dropout_p": 0.9, "is_causal": True, "scale": 3.0}),
    "cross_entropy": ((t(3, 4), ints(0, 1, 2)), {"weight": t(4, low=0.1), "ignore_index": 1, "label_smoothing": 0.5, **OLD}),
    "nll_loss": ((t(3, 4), ints(0, 1, 2)), {"weight": t(4, low=0.1), "ignore_index": 0, **OLD}),
    "mse_loss": (PAIR, {"weight": t(3, 4, low=0.1), **OLD}), "l1_loss": (PAIR, {"weight": t(3, 4, low=0.1), **OLD}),
    "smooth_l1_loss": (PAIR, {"beta": 0.1, **OLD}), "huber_loss": (PAIR, {"reduction": "sum", "delta": 0.1, "weight": t(3, 4, low=0.1)}),
    "binary_cross_entropy": ((P, P), {"weight": t(2, 6, low=0.1), **OLD}),
    "binary_cross_entropy_with_logits": ((L, P), {"weight": t(2, 6, low=0.1), "pos_weight": t(6, low=2.0, high=3.0), **OLD}),
    "kl_div": (PAIR, {"log_target": True, **OLD}),
    "hinge_embedding_loss": ((t(3), SIGNS), {"margin": 3.0, **OLD}),
    "margin_ranking_loss": ((t(3), t(3, low=0.0), SIGNS), {"margin": 3.0, **OLD}),
    "cosine_embedding_loss": ((t(3, 4), t(3, 4, low=0.0), SIGNS), {"margin": -0.5, **OLD}),
    "triplet_margin_loss": ((t(3, 4), t(3, 4, low=0.0), t(3, 4, low=0.5)), {"margin": 3.0, "p": 1, "eps": 1.0, "swap": True, **OLD}),
    "soft_margin_loss": ((t(3), SIGNS), OLD),
    "poisson_nll_loss": ((P, P + 2), {"log_input": False, "full": True, "eps": 0.5, **OLD}),
    "gaussian_nll_loss": ((L, P, P), {"full": True, "eps": 0.5, "reduction": "sum"}),
    "multilabel_soft_margin_loss": (PAIR, {"weight": t(4, low=0.1), **OLD}),
}



BESIDE = {
    "batch_norm": {"momentum": {"training": True}}, "rrelu": {"lower": {"training": True}, "upper": {"training": True}},
    "poisson_nll_loss": {"eps": {"log_input": False}},
    "interpolate": {"align_corners": {"mode": "bilinear"}, "scale_factor": {"size": DROP, "scale_factor": 1.5},
                    "recompute_scale_factor": {"size": DROP, "scale_factor": 1.7, "mode": "bilinear"}},
}
BESIDE["upsample"] = BESIDE["interpolate"]

ROWS, PROBES, INPUTS = {}, {}, {}


def row(names, **what):
    for name in names.split():
        ROWS[name] = what


for _name, (_args, _others, *_more) in CALLS.items():
    _given = dict(zip(inspect.signature(getattr(F, _name)).parameters, _args))
    row("nn.functional." + _name, **_given, **(_more[0] if _more else {}), others={k: v if isinstance(v, list) else [v] for k, v in _others.items()},
        beside=BESIDE.get(_name, {}))


# ---- Elementwise
row("bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift", input=WHOLE, other=OTHER_WHOLE)
row("bitwise_not", input=WHOLE)
row("clamp clip", min=-0.5, others={"max": 0.25})
row("logit", input=Y / 4, others={"eps": 0.3})
row("nan_to_num", input=ingot.tensor([float("nan"), float("inf"), -float("inf")]), others={"nan": 2.0, "posinf": 3.0, "neginf": 4.0})
row("where", condition=Y > 1, others={"condition": [X > 0.3]})
row("Tensor.where", condition=Y > 1, others={"condition": [X > 0.3]})
row("swiglu", input=X, others={"gate": [X], "up": [Y]}, beside={"gate": {"input": DROP, "gate": Y, "up": Y}, "up": {"input": DROP, "gate": X,
    "up": X}})
row("pow xlogy", others={"self": [2.0]}, beside={"self": {"input": DROP, "self": 1.5, "exponent": Y, "other": DROP}})
row("xlogy", others={"self": [2.0]}, beside={"self": {"input": DROP, "self": 1.5, "other": Y}})
row("prelu", input=X, weight=VECTOR)
row("isclose allclose",  input=ingot.tensor([1.0, 2.0, float("nan")]), other=ingot.tensor([1.01, 2.0, float("nan")]), others={"rtol": [0.1],
    "atol": [0.1]})
row("allclose", input=X, other=X * 1.01, others={"rtol": [0.1], "atol": [0.1]}, beside={"equal_nan": {"input": NANS, "other": NANS},
    "other": {"input": Y, "other": Y}, "input": {"other": X}})
row("eq ne not_equal", other=X, others={"other": [Y], "input": [Y]})
row("logical_or", input=X * 0, other=X * 0, others={"input": [X], "other": [X]})
row("heaviside", input=ingot.tensor([0.0, 1.0, -1.0, 0.0]))
row("equal", other=X, others={"other": [Y]})
row("is_tensor", obj=1.0, others={"obj": [X]})
row("is_floating_point", input=X, others={"input": [WHOLE]})
row("isreal isposinf isneginf isinf isnan isfinite signbit", input=ingot.tensor([1.0, -1.0]), others={"input": [ingot.tensor([float("inf"), 1.0]),
                                                                                                         ingot.tensor([-float("inf"), float("nan")]),
                                                                                                             t(3)]})
row("is_nonzero", input=ingot.tensor(1), others={"input": [ingot.tensor(0)]})
row("numel", input=X, others={"input": [VECTOR]})
row("isin", elements=WHOLE, test_elements=OTHER_WHOLE)
row("acosh arccosh", input=Y + 1)
row("round", others={"decimals": [1]}, input=X * 3.3)
# ---- Reductions
row("all any count_nonzero", input=ingot.tensor([[True, False], [True, True]]), others={"dim": 0, "input": [ingot.tensor([[True, True]]),
    ingot.tensor([[False, False]])]},
    beside={"keepdim": {"dim": 1}})
row("amax amin aminmax argmax argmin", others={"dim": 0}, beside={"keepdim": {"dim": 0}})
row("sum mean prod nansum nanmean", others={"dim": 0})
row("var std var_mean std_mean", others={"dim": 0, "unbiased": False}, beside={"unbiased": {"dim": 0}})
row("max min", other=DROP, dim=DROP, others={"other": [Y - 3], "dim": [1]}, beside={"other": {"other": Y}, "dim": {"dim": 0}, "keepdim": {"dim": 1}})
row("median nanmedian", dim=DROP, others={"dim": [1]}, beside={"keepdim": {"dim": 1}})
row("quantile nanquantile", q=0.37, others={"dim": [0], "interpolation": ["lower", "higher"]})
row("mode kthvalue", others={"dim": [0]})
row("cummax cummin", others={"dim": [1]})
row("norm", others={"p": [1.0], "dim": [0]})
row("log_softmax softmax", others={"dim": [1]})
row("softmax log_softmax cumsum cumprod logcumsumexp sort argsort topk glu unbind renorm logsumexp", others={"dim": [0, 1], "k": [3],
    "dtype": [ingot.float64]},
    dim=-1)
row("bincount", input=WHOLE, others={"weights": [VECTOR], "minlength": [20]})
row("histc", others={"min": [-0.5], "max": [0.5]}, beside={"min": {"max": 0.75}, "max": {"min": -0.75}})
row("cov", others={"fweights": [WHOLE], "aweights": [Y[0]]})
row("unique unique_consecutive", input=ingot.tensor([[1, 1], [1, 1], [2, 0]]), others={"dim": [0]})
row("trapezoid trapz cumulative_trapezoid", others={"x": [Y], "dx": [2.0]})
row("searchsorted", sorted_sequence=VECTOR.sort().values, input=X, others={"sorter": [PLACES_4]})
row("bucketize", input=ingot.tensor([-0.5, 0.1, 0.5]))
# ---- Shapes and places
row("broadcast_to", input=VECTOR, size=(2, 4), others={"size": [(3, 4)]})
row("Tensor.expand", input=VECTOR, size=(2, 4), others={"size": [(3, 4)]})
row("Tensor.view view_copy", size=(2, 8), others={"size": [(8, 2)]})
row("Tensor.repeat", repeats=(1, 2), others={"repeats": [(2, 1)]})
row("Tensor.unfold", dimension=0, size=2, step=1)
row("Tensor.view_as Tensor.reshape_as Tensor.expand_as", input=t(1, 4), other=X, others={"input": [t(1, 4) + 1], "other": [t(3, 4)]})
row("Tensor.view_as Tensor.reshape_as", input=X, other=t(2, 8), others={"other": [t(8, 2)]})
row("reshape", others={"shape": [(8, 2)]})
row("unflatten", others={"dim": [1], "sizes": [(4, 1)]})
row("diagonal", input=CUBE, others={"dim1": [2], "dim2": [2], "offset": [1]})
row("diag_embed", input=CUBE, others={"dim1": [0], "dim2": [0], "offset": [1]})
row("tile", dims=(2, 1))
row("Tensor.size Tensor.stride", input=t(2, 3), others={"dim": [1]})
row("diagonal_scatter", input=CUBE, src=t(4, 2), others={"dim1": [2], "dim2": [2], "offset": [1]}, beside={"offset": {"input": X, "src": t(3),
    "offset": -1}})
row("flatten", input=CUBE, others={"start_dim": [1], "end_dim": [1]})
row("movedim moveaxis", input=CUBE, source=(0, 1), destination=(1, 2), others={"source": [(1, 0)], "destination": [(2, 1)]})
row("transpose swapaxes swapdims", input=CUBE, dim0=0, dim1=1, others={"dim0": [2], "dim1": [2]})
row("permute", dims=(0, 1))
row("flip", dims=(0,), others={"dims": [(1,)]})
row("roll", shifts=(1,), others={"shifts": [(2,)], "dims": [(1,)]})
row("rot90", others={"dims": [(1, 0)]})
row("squeeze", input=t(1, 3, 1), dim=DROP, others={"dim": [0]})
row("repeat_interleave", others={"dim": [1], "output_size": [7]})
row("narrow", start=1, length=1, others={"length": [2]})
row("select", index=1)
row("select_scatter", index=1, src=VECTOR)
row("slice_scatter", input=X, src=t(2, 4) + 5, start=0, end=2, others={"start": [1], "end": [3], "step": [2], "dim": [1]},
    beside={"step": {"end": 4, "src": t(1, 4) + 5}, "start": {"src": t(1, 4) + 5}, "end": {"src": t(1, 4) + 5}, "dim": {"src": ingot.tensor(2.0)}})
row("split", others={"split_size_or_sections": [2]})
row("tensor_split", indices=DROP, sections=2, others={"indices": [(1,)]}, beside={"indices": {"sections": DROP, "indices": (2,)}})
row("dsplit", input=CUBE)
row("stack cat concat concatenate", others={"dim": [1]})
row("combinations", input=VECTOR)
row("diff", others={"prepend": [Y], "append": [Y]})
row("gather", index=PLACES_4.reshape(1, 4), others={"index": [ints(1, 1, 1, 1).reshape(1, 4)]})
row("scatter", index=PLACES_4.reshape(1, 4), src=Y, others={"index": [ints(1, 1, 1, 1).reshape(1, 4)], "value": [2.0], "reduce": ["add"]},
    beside={"value": {"src": DROP, "value": 1.0}})
row("scatter_add scatter_reduce", index=PLACES_4.reshape(1, 4), src=Y, others={"index": [ints(1, 1, 1, 1).reshape(1, 4)]})
row("put", source=VECTOR, others={"accumulate": [True]})
row("index_put", indices=(ints(0, 1),), values=VECTOR, others={"indices": [(ints(1, 2),)]})
row("index_add", others={"index": [ints(0, 0, 1, 1)], "alpha": [2]})
row("index_select", others={"dim": [1]})
row("index_fill", index=ints(0, 1), others={"dim": [1], "index": [ints(2, 1)]})
row("index_copy", index=ints(0, 1), source=t(2, 4) + 4, others={"index": [ints(2, 1)], "dim": [1]}, beside={"dim": {"source": t(2, 2), "input": t(2,
    2), "index": ints(1, 0)}})
row("take_along_dim", others={"dim": [0]})
row("masked_fill masked_scatter masked_select", mask=Y > 1, others={"mask": [X > 0.3]})
row("meshgrid", args=[VECTOR, VECTOR[:2]])
PROBES["einsum"] = lambda f, equation: f(equation, X, Y)
row("einsum", equation="ij,jk->ik", others={"equation": ["ij,jk->ki"]})
row("tril_indices", row=4, col=3, others={"col": [2]})
row("embedding", input=PLACES_4, weight=X, others={"padding_idx": [1]}, padding_idx=0)
row("one_hot", tensor=PLACES_4, num_classes=5)
row("nn.functional.one_hot", tensor=PLACES_4, others={"num_classes": [6]})
# ---- Products
row("cholesky inverse det logdet slogdet matrix_power", input=POSITIVE, others={"input": [POSITIVE * 2]})
row("linalg.cholesky linalg.inv linalg.det linalg.matrix_power", A=POSITIVE, others={"A": [POSITIVE * 2]})
row("cholesky_solve", L=ingot.cholesky(POSITIVE), others={"L": [ingot.cholesky(POSITIVE * 2)], "upper": [True]})
row("linalg.solve_triangular", A=POSITIVE, upper=True)
row("bmm", input=CUBE, mat2=CUBE + 1)
row("addbmm", input=X, batch1=CUBE, batch2=CUBE + 1)
row("addmv", input=VECTOR)
row("dot vdot ger outer", input=VECTOR, other=VECTOR + 1, tensor=VECTOR + 1, vec2=VECTOR + 1)
row("vdot", input=VECTOR, other=VECTOR + 1)
row("cross linalg.cross", input=t(3, 3), other=t(3, 3) + Y[:3, :3], others={"dim": [0, 1]})
row("tensordot", others={"dims": [1]})
row("cdist", others={"p": [1.0]})
row("linalg.vecdot", dim=0, others={"dim": [1]})
row("linalg.norm linalg.vector_norm", others={"ord": [1], "dim": [0]})
row("linalg.matrix_norm", A=t(3, 5), others={"ord": [1], "dim": [(1, 0)]}, beside={"dim": {"ord": 1}})
row("linalg.vander vander", x=VECTOR, others={"N": [3]})
row("linalg.diagonal", A=CUBE, others={"dim1": [0], "dim2": [0]})
row("special.multigammaln", input=Y + 2, p=2)
row("special.xlog1py", other=Y)
row("polygamma", n=1, input=Y, others={"n": [2]})
# ---- New tensors
row("arange", start=1.0, others={"end": [9], "step": [2]}, beside={"step": {"end": 9}, "end": {"end": 7}})
row("linspace logspace range", start=1.0, end=3.0, steps=4, others={"start": [2.0], "end": [4.0]})
row("eye", others={"m": [2]})
row("empty zeros ones rand randn", args=[(2, 2)])
row("Tensor.new_zeros Tensor.new_ones Tensor.new_empty", args=[(2, 2)])
row("full", size=(2, 3))
row("randint", low=2, high=9, others={"low": [4], "high": [20]})
row("normal", size=(2, 2), others={"size": [(3, 3)]})
row("Tensor.new_full", size=(2, 3), fill_value=2)
row("tensor as_tensor Tensor.new_tensor", data=[1.5, 2.5], others={"data": [[1.0, 2.0]]})
row("asarray", obj=X, others={"obj": [[1.0, 2.0]], "copy": [True]})
row("scalar_tensor", s=1.5)
row("from_bytes", data=bytes(16), dtype=ingot.float32, shape=(4,), others={"data": [bytes([1]) * 16], "dtype": [ingot.int32], "shape": [(2, 2)]})
row("from_dlpack", x=X, others={"copy": [True]})
row("from_numpy", ndarray=VECTOR, others={"share": [True]})
row("to_bytes", x=X)
row("argument", value=1.5)
row("bernoulli", input=Y / 4, others={"p": [0.9]})
row("multinomial", input=Y)
row("randperm", n=8)
row("randint_like", low=2, high=9, others={"low": [4], "high": [20]})
row("Tensor.random_", from_=2, to=9, others={"from_": [4], "to": [20]})
row("Tensor.bernoulli_", p=0.3)
row("can_cast", from_=ingot.float32, to=ingot.int32, others={"to": [ingot.float64], "from_": [ingot.int64]})
row("promote_types", type1=ingot.float32, type2=ingot.int32, others={"type1": [ingot.int64], "type2": [ingot.float64]})
row("finfo", others={"type": [ingot.float64]})
row("iinfo", type=ingot.int32, others={"type": [ingot.int8]})
row("unfold", input=IMAGE)
# ---- Tensor alone
row("Tensor.to", dtype=ingot.float32, other=DROP, others={"other": [X.to(ingot.float64)], "dtype": [ingot.float64]},
    beside={"other": {"dtype": DROP, "other": X}, "device": {"device": "cpu"}})
row("Tensor.to_device", args=["cpu"], others={"stream": [1]})
row("Tensor.type", others={"dtype": [ingot.float64]})
row("Tensor.type_as", others={"other": [X.to(ingot.float64)]})
row("Tensor.fill_diagonal_", input=t(5, 2), value=2.0)
row("Tensor.requires_grad_", requires_grad=False)
row("Tensor.set_name", name="a", others={"name": ["b"]})
row("Tensor.numpy", input=X)
row("Tensor.exponential_ Tensor.uniform_ Tensor.normal_", others={"from_": [0.5], "to": [2.0], "mean": [1.0], "std": [2.0], "lambd": [2.0]})
# ---- nn.functional beside CALLS
row("nn.functional.layer_norm layer_norm rms_norm", normalized_shape=(4,), others={"normalized_shape": [(4, 4)], "weight": [VECTOR],
    "bias": [VECTOR], "eps": [1.0]})
row("linear", weight=Y, others={"bias": [VECTOR]})
row("group_norm nn.functional.group_norm", **{**ROWS["nn.functional.group_norm"], "num_groups": 2})
row("pixel_shuffle", input=t(1, 4, 4, 4), upscale_factor=2, others={"upscale_factor": [1]})
row("pixel_unshuffle", input=t(1, 1, 4, 4), downscale_factor=2, others={"downscale_factor": [4]})
row("channel_shuffle", input=t(1, 4, 2, 2), groups=2, others={"groups": [4]})
for _n, _x in ((1, LINE[..., :7]), (2, IMAGE[..., :5]), (3, t(1, 1, 5, 5, 5))):
    row(f"max_pool{_n}d max_pool{_n}d_with_indices", input=_x, kernel_size=2, others={"stride": [1], "padding": [1], "dilation": [2]})
    row(f"avg_pool{_n}d", input=_x, kernel_size=2, others={"stride": [1], "padding": [1], "divisor_override": [3]},
        beside={"count_include_pad": {"padding": 1}})
    row(f"lp_pool{_n}d", input=_x, norm_type=2.0, kernel_size=2, others={"stride": [1], "norm_type": [1.0, 3.0]})
    row(f"adaptive_avg_pool{_n}d", input=_x, output_size=2)
    row(f"adaptive_max_pool{_n}d", input=_x, output_size=2)
    ROWS[f"nn.functional.adaptive_max_pool{_n}d"] = {**ROWS[f"adaptive_max_pool{_n}d"], "others": {"return_indices": [True]}}
    ROWS[f"nn.functional.max_pool{_n}d"] = {**ROWS[f"max_pool{_n}d"], "others": {**ROWS[f"max_pool{_n}d"]["others"], "return_indices": [True]}}
    _big, _w = t(1, 2, *[6] * _n), t(4, 2, *[3] * _n)
    _conv = {"stride": [2], "padding": [1], "dilation": [2], "bias": [t(4)], "groups": [2], "output_padding": [1]}
    row(f"conv{_n}d", input=_big, weight=_w, others=_conv, )
    row(f"conv_transpose{_n}d", input=_big, weight=t(2, 4, *[3] * _n), others={**_conv, "groups": [2]},
        beside={"output_padding": {"stride": 2}})
    _layer = dict(in_channels=2, out_channels=4, kernel_size=3, others={**{k: [v] if not isinstance(v, list) else v for k, v in _conv.items()},
        "bias": [False],
                  "padding_mode": ["circular"], "in_channels": [4], "out_channels": [6], "kernel_size": [2], "device": ["null"]},
                      beside={"padding_mode": {"padding": 1},
                  "output_padding": {"stride": 2}})
    row(f"nn.Conv{_n}d nn.ConvTranspose{_n}d", **_layer)
    for _kind in ("Conv", "ConvTranspose"):
        INPUTS[f"nn.{_kind}{_n}d"] = (_big,)
    for _kind in ("MaxPool", "AvgPool", "LPPool", "AdaptiveAvgPool", "AdaptiveMaxPool"):
        INPUTS[f"nn.{_kind}{_n}d"] = (_x,)
        _function = ROWS[{"MaxPool": f"nn.functional.max_pool{_n}d", "AvgPool": f"avg_pool{_n}d", "LPPool": f"lp_pool{_n}d",
                          "AdaptiveAvgPool": f"adaptive_avg_pool{_n}d", "AdaptiveMaxPool": f"nn.functional.adaptive_max_pool{_n}d"}[_kind]]
        row(f"nn.{_kind}{_n}d", **{k: v for k, v in _function.items() if k != "input"})
    for _kind in ("BatchNorm", "InstanceNorm"):
        row(f"nn.{_kind}{_n}d", num_features=2, others={"num_features": [3], "affine": [_kind == "InstanceNorm"],
            "track_running_stats": [_kind == "InstanceNorm"]},
            beside={"momentum": {"track_running_stats": True}, "device": {"affine": True}, "dtype": {"affine": True},
                    "num_features": {"affine": True}})
        INPUTS[f"nn.{_kind}{_n}d"] = (_big,)
    for _kind in ("ZeroPad", "ConstantPad", "ReflectionPad", "ReplicationPad", "CircularPad"):
        row(f"nn.{_kind}{_n}d", padding=1, value=0.5, others={"padding": [2]})
        INPUTS[f"nn.{_kind}{_n}d"] = (_big,)

# ---- Layers
def layer(names, *inputs, **what):
    row(" ".join("nn." + n for n in names.split()), **what)
    for n in names.split():
        INPUTS["nn." + n] = inputs


SEQUENCE = t(3, 2, 4)
layer("Linear", X, in_features=4, out_features=3, others={"bias": [False]})
layer("Bilinear", X, Y, in1_features=4, in2_features=4, out_features=3, others={"bias": [False]})
layer("Embedding", PLACES_4, num_embeddings=5, embedding_dim=3, others={"padding_idx": [2], "max_norm": [1.0], "scale_grad_by_freq": [True],
    "sparse": [True],
      "_weight": [t(5, 3)], "_freeze": [True]}, beside={"_freeze": {"_weight": t(5, 3)}})
layer("LayerNorm RMSNorm", X, normalized_shape=4, eps=1e-5, others={"elementwise_affine": [False], "bias": [False], "normalized_shape": [(4, 4)]})
layer("GroupNorm", IMAGE, num_groups=2, num_channels=4, others={"affine": [False], "num_groups": [4]})
layer("LocalResponseNorm", IMAGE * 3, size=2, alpha=0.5)
layer("Flatten", CUBE, others={"start_dim": [0], "end_dim": [1]})
layer("Unflatten", X, dim=1, unflattened_size=(2, 2), others={"dim": [0], "unflattened_size": [(4, 1)]})
layer("PixelShuffle", t(1, 4, 4, 4), upscale_factor=2, others={"upscale_factor": [1]})
layer("PixelUnshuffle", t(1, 1, 4, 4), downscale_factor=2, others={"downscale_factor": [4]})
layer("ChannelShuffle", t(1, 4, 2, 2), groups=2, others={"groups": [4]})
layer("Upsample", IMAGE, size=3, others={"size": [4], "scale_factor": [2.5], "mode": ["bilinear"], "align_corners": [True],
    "recompute_scale_factor": [True]},
      beside={"align_corners": {"mode": "bilinear"}, "scale_factor": {"size": DROP, "scale_factor": 2.0},
              "recompute_scale_factor": {"size": DROP, "scale_factor": 1.7, "mode": "bilinear"}})
layer("Unfold", IMAGE, kernel_size=2)
layer("Fold", t(1, 4, 25), output_size=19, kernel_size=2, stride=4, others={"output_size": [20]})
layer("Dropout Dropout1d AlphaDropout", t(4, 8), others={"p": [0.9]})
layer("Dropout2d", t(2, 8, 3, 3), others={"p": [0.9]})
layer("Dropout3d", t(2, 8, 2, 2, 2), others={"p": [0.9]})
layer("GELU", X)
layer("Hardtanh", X * 3)
layer("GLU Softmax Softmin LogSoftmax", X, others={"dim": [0]})
layer("Threshold", X, threshold=0.1, value=2.0)
layer("RReLU", X, lower=0.1, upper=0.3, others={"lower": [0.2], "upper": [0.5]})
layer("PReLU", X, num_parameters=4, others={"num_parameters": [1]})
layer("CosineSimilarity PairwiseDistance", X, Y, others={"eps": [10.0]})
layer("Identity", X)
layer("RNN LSTM GRU", SEQUENCE, input_size=4, hidden_size=3, num_layers=2, others={"dropout": [0.5], "proj_size": [2], "nonlinearity": ["relu"],
    "num_layers": [1],
      "input_size": [5]})
layer("RNNCell LSTMCell GRUCell", X, input_size=4, hidden_size=3, others={"nonlinearity": ["relu"], "input_size": [5]})
layer("MultiheadAttention", SEQUENCE, SEQUENCE, SEQUENCE, embed_dim=4, num_heads=2, others={"embed_dim": [6], "num_heads": [4], "dropout": [0.5],
    "add_bias_kv": [True],
      "add_zero_attn": [True], "kdim": [5], "vdim": [5]})
_block = {"d_model": [6], "nhead": [4], "dropout": [0.5], "activation": ["gelu"], "layer_norm_eps": [1.0], "num_layers": [2],
    "custom_encoder": [nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 7), 1)],
          "custom_decoder": [nn.TransformerDecoder(nn.TransformerDecoderLayer(4, 2, 7), 1)]}
layer("TransformerEncoderLayer", SEQUENCE, d_model=4, nhead=2, dim_feedforward=5, others=_block)
layer("TransformerDecoderLayer", SEQUENCE, SEQUENCE, d_model=4, nhead=2, dim_feedforward=5, others=_block)
layer("Transformer", SEQUENCE, SEQUENCE, d_model=4, nhead=2, dim_feedforward=5, num_encoder_layers=1, num_decoder_layers=1, others=_block)
_encoder, _decoder = (k(4, 2, 5, dropout=0.0) for k in (nn.TransformerEncoderLayer, nn.TransformerDecoderLayer))
layer("TransformerEncoder", SEQUENCE, encoder_layer=_encoder, num_layers=1, others={"norm": [nn.LayerNorm(4)],
    "encoder_layer": [nn.TransformerEncoderLayer(4, 2, 6)]})
layer("TransformerDecoder", SEQUENCE, SEQUENCE, decoder_layer=_decoder, num_layers=1,
      others={"norm": [nn.LayerNorm(4)], "decoder_layer": [nn.TransformerDecoderLayer(4, 2, 6)]})
LOSSES = {"CrossEntropyLoss": "cross_entropy", "NLLLoss": "nll_loss", "MSELoss": "mse_loss", "L1Loss": "l1_loss", "SmoothL1Loss": "smooth_l1_loss",
          "HuberLoss": "huber_loss", "BCELoss": "binary_cross_entropy", "BCEWithLogitsLoss": "binary_cross_entropy_with_logits",
              "KLDivLoss": "kl_div",
          "HingeEmbeddingLoss": "hinge_embedding_loss", "MarginRankingLoss": "margin_ranking_loss", "CosineEmbeddingLoss": "cosine_embedding_loss",
          "TripletMarginLoss": "triplet_margin_loss", "SoftMarginLoss": "soft_margin_loss", "PoissonNLLLoss": "poisson_nll_loss",
          "GaussianNLLLoss": "gaussian_nll_loss", "MultiLabelSoftMarginLoss": "multilabel_soft_margin_loss"}
for _loss, _function in LOSSES.items():
    layer(_loss, *CALLS[_function][0], others=ROWS["nn.functional." + _function]["others"], beside=BESIDE.get(_function, {}))


# ---- What is not seen by its result: how it is run, and what is looked at
def probe(name):
    def keep(run):
        for n in name.split():
            PROBES[n] = run
        return run

    return keep


def holder(cls, *args, **given):
    return cls(*args, **given)


for _n in ("nn.ModuleList", "nn.ModuleDict", "nn.ParameterList", "nn.ParameterDict"):
    PROBES[_n] = holder
row("nn.ModuleList", others={"modules": [[nn.Linear(1, 1)]]})
row("nn.ModuleDict", others={"modules": [{"a": nn.Linear(1, 1)}]})
row("nn.ParameterList", others={"values": [[X]]})
row("nn.ParameterDict", others={"parameters": [{"a": X}]})
row("nn.Parameter", others={"data": [X]})
row("nn.Buffer FloatTensor", data=X, others={"data": [Y]})


@probe("nn.Parameter nn.Buffer")
def _(cls, **given):
    made = cls(**given)
    return made, getattr(made, "persistent", None)


@probe("nn.Embedding.from_pretrained")
def _(function, **given):
    made = nn.Embedding.from_pretrained(X, **given)
    fixed = not made.weight.requires_grad
    made.weight.requires_grad_(True)
    made(PLACES_4).sum().backward()
    return made, fixed, made.weight.grad


row("nn.Embedding.from_pretrained", others={"padding_idx": [1]})


def net():
    made = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3))
    made.add_module("again", made[0])
    made.add_module("once_more", made[1])
    made.register_buffer("own", X)
    return made


def method(name, run, **what):
    PROBES[name] = run
    row(name, **what)


row("nn.init.calculate_gain", nonlinearity="leaky_relu", others={"nonlinearity": ["tanh"], "param": [0.5]})
row("nn.init.constant_", val=2.0)
for _n in "eye_ kaiming_normal_ kaiming_uniform_ normal_ ones_ trunc_normal_ uniform_ xavier_normal_ xavier_uniform_ zeros_ constant_".split():
    row("nn.init." + _n, val=2.0, others={"tensor": [t(4, 3)], "mode": ["fan_out"], "nonlinearity": ["tanh"], "a": [0.5], "b": [1.5]}, tensor=t(3, 5))

for _n in ("named_modules", "named_parameters", "parameters", "named_buffers", "buffers"):
    method("nn.Module." + _n, lambda f, **given: list(f(net(), **given)), others={"memo": [set()], "prefix": ["a"]})


@probe("nn.Module.named_modules")
def _(function, memo=None, **given):
    made = net()
    return [name for name, _ in function(made, memo={made} if memo else None, **given)]


row("nn.Module.named_modules", others={"memo": [1], "prefix": ["a"]})
method("nn.Module.state_dict", lambda f, **given: [(k, v.requires_grad) for k, v in f(net(), **given).items()], others={"prefix": ["a."]})


@probe("nn.Module.register_buffer")
def _(function, name=None, tensor=None, persistent=True):
    made = nn.Module()
    made.register_buffer("a", X, persistent=persistent)
    return made


@probe("nn.Module.load_state_dict")
def _(function, **given):
    made = nn.Linear(4, 3)
    state = {k: v.to(ingot.float64) + 1 for k, v in made.state_dict().items()}
    if "strict" in given:
        state.pop("bias")
    try:
        return made.load_state_dict(state, **given), made
    except ingot.Error as e:
        return str(e)


row("nn.Module.load_state_dict", beside={"strict": {"strict": True}})
method("nn.Module.train", lambda f, **given: f(net(), **given)[1].training)
method("nn.Module.requires_grad_", lambda f, **given: [p.requires_grad for p in f(net(), **given).parameters()])


def graded():
    made = nn.Linear(4, 3)
    made(X).sum().backward()
    made.weight.grad
    return made


@probe("nn.Module.zero_grad")
def _(function, **given):
    made = graded()
    made.zero_grad(**given)
    return made.weight.grad


def hooks(register, **given):
    made, seen = nn.Linear(4, 3), []
    getattr(made, register)(lambda *a: seen.append("first"))
    getattr(made, register)(lambda *a: seen.append(("second", len(a))), **given)
    try:
        made(X.clone().requires_grad_(True) if "always_call" not in given else t(3, 3)).sum().backward()
    except ingot.Error:
        pass
    return seen


for _n in ("forward_hook", "forward_pre_hook", "full_backward_hook"):
    method(f"nn.Module.register_{_n}", lambda f, _n=_n, **given: hooks(f"register_{_n}", **given))
PROBES["nn.Module.register_forward_hook"] = lambda f, always_call=None, **given: hooks("register_forward_hook", **given, **(
    {} if always_call is None else {"always_call": always_call}))
row("nn.Module.register_forward_hook", beside={"always_call": {"always_call": False}})


def on_gpu(function, *subject, device="cuda:77"):
    """There may be no GPU, so the device is one that does not exist: its name is in the error."""
    try:
        function(*subject, device=device)
    except ingot.DeviceError as e:
        return str(e).splitlines()[0]


for _n in ("Tensor.cuda", "cuda.max_memory_allocated", "cuda.memory_allocated", "cuda.reset_peak_memory_stats"):
    PROBES[_n] = on_gpu
PROBES["nn.Module.cuda"] = lambda f, **given: on_gpu(f, net(), **given)
row("nn.Module.cuda cuda.max_memory_allocated cuda.memory_allocated cuda.reset_peak_memory_stats", others={"device": ["cuda:78"]})
row("Tensor.cuda", device=77, others={"device": [78]})


@probe("Tensor.register_hook")
def _(function, self, hook):
    x = own(X).requires_grad_(True)
    x.register_hook((lambda g: g * 2) if hook else (lambda g: None))
    x.sum().backward()
    return x.grad


row("Tensor.register_hook", hook=0, others={"hook": [1]})


@probe("device.set_memory_limit")
def _(function, bytes):
    cpu = ingot.device("cpu")
    before = cpu.memory().limit
    try:
        cpu.set_memory_limit(bytes)
        return cpu.memory().limit
    finally:
        cpu.set_memory_limit(before)


row("device.set_memory_limit", bytes=1 << 34)


def forward(name, make, inputs, **what):
    def run(function, **given):
        ingot.manual_seed(3)
        made = make().eval()
        return made(*map(own, inputs), **given)

    method(f"nn.{name}.forward", run, **what)


_causal = ingot.ones(3, 3, dtype=ingot.bool_).triu(1)
_padded = ingot.tensor([[False, False, True], [False, True, True]])
_masks = {"attn_mask": [_causal], "key_padding_mask": [_padded], "src_mask": [_causal], "src_key_padding_mask": [_padded], "mask": [_causal],
    "tgt_mask": [_causal],
          "memory_mask": [_causal], "tgt_key_padding_mask": [_padded], "memory_key_padding_mask": [_padded], "is_causal": [True],
              "tgt_is_causal": [True],
          "memory_is_causal": [True], "src_is_causal": [True]}
forward("MultiheadAttention", lambda: nn.MultiheadAttention(4, 2), (SEQUENCE, SEQUENCE, SEQUENCE), others=_masks)
forward("TransformerEncoderLayer", lambda: nn.TransformerEncoderLayer(4, 2, 5), (SEQUENCE,), others=_masks)
forward("TransformerDecoderLayer", lambda: nn.TransformerDecoderLayer(4, 2, 5), (SEQUENCE, SEQUENCE), others=_masks)
forward("TransformerEncoder", lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 5), 1), (SEQUENCE,), others=_masks)
forward("TransformerDecoder", lambda: nn.TransformerDecoder(nn.TransformerDecoderLayer(4, 2, 5), 1), (SEQUENCE, SEQUENCE), others=_masks)
forward("Transformer", lambda: nn.Transformer(4, 2, 1, 1, 5), (SEQUENCE, SEQUENCE), others=_masks)
for _n in ("RNN", "GRU", "LSTM"):
    _h = ingot.ones(1, 2, 3)
    forward(_n, lambda _n=_n: getattr(nn, _n)(4, 3), (SEQUENCE,), others={"hx": [(_h, _h) if _n == "LSTM" else _h]})
    forward(_n + "Cell", lambda _n=_n: getattr(nn, _n + "Cell")(4, 3), (X,), others={"hx": [(ingot.ones(4,
        3),) * 2 if _n == "LSTM" else ingot.ones(4, 3)]})
PROBES["nn._Recurrent.forward"] = PROBES["nn.GRU.forward"]
for _n in (1, 2, 3):
    forward(f"ConvTranspose{_n}d", lambda _n=_n: getattr(nn, f"ConvTranspose{_n}d")(2, 2, 3, stride=2), (t(1, 2, *[4] * _n),),
        others={"output_size": [[10] * _n]})
method("nn.Transformer.generate_square_subsequent_mask", lambda f, **given: nn.Transformer.generate_square_subsequent_mask(3, **given))


@probe("nn.functional.scaled_dot_product_attention")
def _(function, **given):
    try:
        return function(**given)
    except ingot.Error as e:
        return type(e).__name__


ROWS["nn.functional.scaled_dot_product_attention"]["others"]["enable_gqa"] = [True]
ROWS["nn.functional.scaled_dot_product_attention"]["beside"] = {"enable_gqa": {"query": t(1, 4, 3, 2), "key": t(1, 2, 3, 2), "value": t(1, 2, 3, 2)}}


@probe("Tensor.numpy")
def _(function, self, **given):
    try:
        return type(function(self.requires_grad_(True), **given)).__name__
    except (TypeError, ImportError) as e:
        return str(e)


PROBES["Tensor.set_name"] = lambda f, self, name: f(self, name).name


@probe("Tensor.to asarray from_dlpack from_numpy")
def _(function, *args, **given):
    """The result, whether it is on the memory of what it was made of, and whether that sees what is written to it."""
    source = (*args, *given.values())[0]
    if function is ingot.from_numpy:
        import array

        source = array.array("f", source.tolist())
        out = function(memoryview(source), share=given.get("share", False))
        return out, out.data_ptr() == source.buffer_info()[0]
    out = function(*args, **given)
    if not isinstance(source, ingot.Tensor) or out.device.name != "cpu":
        return out
    seen = facts(out), out.data_ptr() == source.data_ptr()
    out.detach().zero_()
    return seen, source


@probe("cuda.manual_seed")
def _(function, seed):
    function(seed)
    return ingot.default_generator()


@probe("nn.functional.embedding embedding")
def _(function, weight, **given):
    weight.requires_grad_(True)
    out = function(weight=weight, **given)
    out.sum().backward()
    return out, weight.grad


@probe("Tensor.backward")
def _(function, self, gradient=None, **given):
    x = own(X).requires_grad_(True)
    y = (x * x).sum(1)
    (y if gradient is not None else y.sum()).backward(gradient, **given)
    again = None
    try:
        y.sum().backward()
    except ingot.Error as e:
        again = type(e).__name__
    return x.grad, x.grad.requires_grad, again


row("Tensor.backward", others={"gradient": [VECTOR]})


@probe("autograd.backward")
def _(function, tensors=None, grad_tensors=None, **given):
    x = own(X).requires_grad_(True)
    y = (x * x).sum(1) * (2 if tensors else 1)
    function(y.sum() if grad_tensors is None else y, grad_tensors, **given)
    try:
        y.sum().backward()
        again = True
    except ingot.Error:
        again = False
    return x.grad, x.grad.requires_grad, again


row("autograd.backward", tensors=None, others={"tensors": [1], "grad_tensors": [VECTOR], "retain_graph": [True]})


@probe("autograd.grad")
def _(function, outputs=None, inputs=None, **given):
    x, z, unused = (own(v).requires_grad_(True) for v in (X, Y, X))
    y = (x * z * (2 if outputs else 1)).sum(1)
    y = y if given.get("grad_outputs") is not None else y.sum()
    over = [x, unused] if "allow_unused" in given or "materialize_grads" in given else [z] if inputs else [x]
    try:
        found = function(y, over, **given)
    except ingot.AutogradError as e:
        return str(e)
    try:
        y.sum().backward()
        again = True
    except ingot.Error:
        again = False
    return found, again


row("autograd.grad", outputs=None, inputs=None, others={"outputs": [1], "inputs": [1], "grad_outputs": [VECTOR], "retain_graph": [True],
    "allow_unused": [False]},
    beside={"allow_unused": {"allow_unused": True}, "materialize_grads": {"allow_unused": True}})


@probe("autograd.gradcheck autograd.gradgradcheck")
def _(function, func=None, inputs=None, **given):
    x = own(X[0, :2]).to(ingot.float64).requires_grad_(True)
    cube = (lambda v: v.detach() * v * v) if func else lambda v: v * v * v * v
    wrong = (lambda v: v.detach() * v) if given.get("raise_exception") is not None or inputs else cube
    try:
        return function(wrong, (x,), **given)
    except ingot.Error as e:
        return str(e)


row("autograd.gradcheck autograd.gradgradcheck", func=None, inputs=None, atol=1e-9, rtol=1e-9, eps=1e-2,
    others={"func": [1], "inputs": [1], "eps": [1e-5, 1e-7, 1e-4], "atol": [10.0], "rtol": [10.0], "raise_exception": [False]},
        beside={"raise_exception": {"raise_exception": True}})
row("nn.utils.clip_grad_norm_ nn.utils.clip_grad_value_", max_norm=0.5, clip_value=0.5, parameters=1.0,
    others={"norm_type": [1.0], "parameters": [2.0], "max_norm": [0.25]}, beside={"error_if_nonfinite": {"parameters": float("nan")}})


@probe("nn.utils.get_total_norm")
def _(function, **given):
    try:
        return function(**given)
    except ingot.Error as e:
        return str(e)


row("nn.utils.get_total_norm", tensors=[X, Y], others={"norm_type": [1.0]}, beside={"error_if_nonfinite": {"tensors": [X, NANS]}})


@probe("nn.utils.clip_grad_norm_ nn.utils.clip_grad_value_")
def _(function, parameters, **given):
    x = own(X).requires_grad_(True)
    x.grad = X * 5 * parameters
    try:
        return function([x], **given), x.grad
    except ingot.Error as e:
        return str(e)


row("nn.utils.vector_to_parameters", vec=t(16) + 1, parameters=[X], others={"parameters": [[t(2, 8)]]})
row("nn.utils.parameters_to_vector", parameters=[X])


# ---- Optimisers and schedules
def optimised(cls, params=1.0, **given):
    """Three steps with gradients that differ; what the parameter and the state are then."""
    p = nn.Parameter(X.to(ingot.float16) if params == "half" else X * params)
    optimizer = cls([p], **given)
    for k in range(8 if cls is ingot.optim.RAdam else 3):  # its warm-up takes five
        p.grad = p.detach() * (k + 1) + k
        optimizer.step(keep_gradients=True)
    return p, [v for v in optimizer.state[p].values()]


_given = {"lr": [0.5], "betas": [(0.5, 0.6)], "ns_coefficients": [(3.0, -4.0, 2.0)], "adjust_lr_fn": ["match_rms_adamw"], "params": [2.0],
    "eps": [10.0], "ns_steps": [2],
          "momentum": [0.5], "weight_decay": [0.5], "momentum_decay": [0.5], "differentiable": [True]}
for _n in "SGD Adam AdamW RMSprop Adagrad Adadelta Adamax NAdam RAdam Lion Muon".split():
    PROBES["optim." + _n] = optimised
    row("optim." + _n, params=1.0, lr=0.1, others=_given, beside={"nesterov": {"momentum": 0.9}, "dampening": {"momentum": 0.9},
        "decoupled_weight_decay": {"weight_decay": 0.5},
        "master_weights": {"params": "half"}, "amsgrad": {"betas": (0.5, 0.5)}})


@probe("optim.Optimizer")
def _(cls, params, defaults):
    return cls([X, Y] if params else [X], defaults).param_groups


row("optim.Optimizer", params=0, defaults={"lr": 1.0}, others={"params": [1], "defaults": [{"lr": 2.0}]})


@probe("optim.Optimizer.step")
def _(function, closure=None, keep_gradients=False):
    p = nn.Parameter(own(X))
    optimizer = ingot.optim.SGD([p], lr=0.1)
    for _ in range(4):
        optimizer.zero_grad()
        (p * p).sum().backward()
        loss = function(optimizer, closure, keep_gradients)
    try:
        return loss, p.grad is None
    except ingot.Error as e:
        return loss, type(e).__name__


row("optim.Optimizer.step", others={"closure": [lambda: 3.0]})


@probe("optim.Optimizer.zero_grad")
def _(function, set_to_none=True):
    p = nn.Parameter(own(X))
    optimizer = ingot.optim.SGD([p], lr=0.1)
    p.grad = X
    function(optimizer, set_to_none)
    return p.grad


def sgd(groups=1, lr=1.0):
    return ingot.optim.SGD([{"params": [nn.Parameter(own(X))]} for _ in range(groups)], lr=lr, momentum=0.9)


def scheduled(cls, optimizer=1.0, **given):
    """The rates and momenta of eight steps."""
    o = sgd(int(optimizer), optimizer)
    if given.get("last_epoch", -1) != -1:
        for g in o.param_groups:
            g["initial_lr"] = g["max_lr"] = g["min_lr"] = g["max_momentum"] = g["base_momentum"] = 0.7
    if "schedulers" in given:
        given["schedulers"] = [ingot.optim.lr_scheduler.StepLR(o, *k) for k in given["schedulers"]]
    if cls is not ingot.optim.lr_scheduler.ChainedScheduler:
        given["optimizer"] = o
    made, out = cls(**given), []
    for k in range(8):
        o.step()
        made.step(*([10.0 - k] if cls is ingot.optim.lr_scheduler.ReduceLROnPlateau else []))
        out.append(([g["lr"] for g in o.param_groups], o.param_groups[0]["momentum"], made.last_epoch if hasattr(made, "last_epoch") else None))
    return out


_S = "optim.lr_scheduler."
PROBES[_S + "*"] = scheduled
row(" ".join(_S + n for n in
             "ConstantLR CosineAnnealingLR CosineAnnealingWarmRestarts ExponentialLR LambdaLR LinearLR MultiStepLR MultiplicativeLR OneCycleLR "
             "PolynomialLR StepLR".split()), optimizer=1.0, T_max=5, T_0=2, gamma=0.5, lr_lambda=lambda k: 0.9, milestones=[2, 4], max_lr=0.5,
                 total_steps=9, step_size=2,
    others={"optimizer": [2.0], "lr_lambda": [lambda k: 0.8], "last_epoch": [2], "T_mult": [2], "eta_min": [0.1], "end_factor": [0.5],
        "max_lr": [0.7], "epochs": [2],
            "steps_per_epoch": [6], "anneal_strategy": ["linear"], "factor": [0.5], "start_factor": [0.5], "total_steps": [12], "pct_start": [0.5],
                "milestones": [[3, 5]]},
    beside={"epochs": {"total_steps": DROP, "epochs": 4, "steps_per_epoch": 5}, "steps_per_epoch": {"total_steps": DROP, "epochs": 4,
        "steps_per_epoch": 5}})
row(_S + "ReduceLROnPlateau", optimizer=1.0, patience=0, threshold=0.5, others={"optimizer": [2.0], "mode": ["max"], "threshold": [0.01],
    "threshold_mode": ["abs"], "min_lr": [0.5], "eps": [0.5],
    "factor": [0.5], "patience": [1]})
ROWS[_S + "OneCycleLR"] = {**ROWS[_S + "StepLR"], "total_steps": 20, "others": {**ROWS[_S + "StepLR"]["others"], "total_steps": [30]}}
row(_S + "SequentialLR", optimizer=1.0, schedulers=[(2,), (3, 0.5)], milestones=[3], others={"optimizer": [2.0], "schedulers": [[(1,), (2, 0.5)]],
    "milestones": [[2]],
    "last_epoch": [2]})


@probe(_S + "ChainedScheduler")
def _(cls, schedulers, optimizer=None):
    """Its optimizer must be that of the schedules."""
    if optimizer is not None:
        return cls([ingot.optim.lr_scheduler.StepLR(sgd(), 2)], sgd())
    return scheduled(cls, schedulers=schedulers)


row(_S + "ChainedScheduler", schedulers=[(2,), (3, 0.5)], others={"schedulers": [[(1,), (2, 0.5)]], "optimizer": [1]})


def stepped(function, epoch=None, metrics=1.0, **rest):
    o = sgd()
    kind = function.__qualname__.partition(".")[0]
    kinds = ingot.optim.lr_scheduler
    made = {"LRScheduler": lambda: kinds.StepLR(o, 2), "CosineAnnealingWarmRestarts": lambda: kinds.CosineAnnealingWarmRestarts(o, 3),
            "ReduceLROnPlateau": lambda: kinds.ReduceLROnPlateau(o)}[kind]()
    o.step()
    made.step(*([metrics] if kind == "ReduceLROnPlateau" else []), epoch=epoch)
    return o.param_groups[0]["lr"], made.last_epoch


for _n in "LRScheduler CosineAnnealingWarmRestarts ReduceLROnPlateau".split():
    method(f"{_S}{_n}.step", stepped, others={"epoch": [5]})
row(_S + "LRScheduler", optimizer=1.0, others={"optimizer": [2.0], "last_epoch": [2]})


@probe(_S + "LRScheduler")
def _(cls, optimizer, last_epoch=-1):
    class Own(cls):
        def get_lr(self):
            return [g["initial_lr"] * (self.last_epoch + 1) for g in self.optimizer.param_groups]

    o = sgd(lr=optimizer)
    if last_epoch != -1:
        o.param_groups[0]["initial_lr"] = 0.7
    return Own(o, last_epoch).get_last_lr()


# ---- Data
class Numbers(ingot.utils.data.Dataset):
    def __init__(self, n=10):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        return float(i)


def loaded(cls, dataset=10, **given):
    """The batches of one pass, and who made them."""
    import threading

    threads = set()
    collate = given.pop("collate_fn", None)
    fetch = ingot.utils.data.default_collate if collate is None else collate

    def note(batch):
        threads.add(threading.current_thread() is threading.main_thread())
        return fetch(batch)

    ready = []
    if "worker_init_fn" in given:
        given["worker_init_fn"] = ready.append if given["worker_init_fn"] else None
    if "timeout" in given:
        import time

        data = Numbers(1)
        given["collate_fn"] = lambda batch: time.sleep(0.3) or batch
        try:
            return list(cls(data, **given))
        except RuntimeError as e:
            return str(e)
    ingot.manual_seed(1)
    return list(cls(Numbers(dataset), collate_fn=note, **given)), sorted(threads), ready


PROBES["utils.data.DataLoader"] = loaded
row("utils.data.DataLoader", dataset=10, others={"dataset": [7], "batch_size": [3], "shuffle": [True], "sampler": [[3, 1, 2]], "batch_sampler": [[[1,
    2], [0]]],
    "collate_fn": [lambda b: len(b)], "drop_last": [True], "timeout": [0.01], "worker_init_fn": [True],
        "generator": [ingot.Generator().manual_seed(7)], "num_workers": [1]},
    beside={"drop_last": {"batch_size": 3}, "generator": {"shuffle": True}, "timeout": {"num_workers": 1, "timeout": 0},
        "worker_init_fn": {"num_workers": 1, "worker_init_fn": None}})


SAMPLERS = " ".join("utils.data." + n for n in "BatchSampler RandomSampler SequentialSampler SubsetRandomSampler WeightedRandomSampler".split())


@probe(SAMPLERS)
def _(cls, **given):
    made = cls(**given)
    return len(made), list(made)


row(SAMPLERS,
    sampler=range(7), batch_size=3,
    drop_last=False, data_source=range(8), indices=[1, 3, 5, 8], weights=[1.0, 2.0, 3.0, 0.5], num_samples=3, others={"sampler": [range(8)],
        "data_source": [range(9)],
    "indices": [[1, 2, 3]], "weights": [[3.0, 0.1, 0.1, 0.1]], "num_samples": [2]})
row("utils.data.RandomSampler", data_source=range(8), others={"data_source": [range(9)], "num_samples": [3]})


@probe("utils.data.Sampler utils.data.Subset utils.data.ConcatDataset utils.data.ChainDataset")
def _(cls, **given):
    made = cls(**given)
    return getattr(made, "data_source", None), list(made) if isinstance(made,
        ingot.utils.data.ChainDataset) else [made[i] for i in range(len(made))] if hasattr(
        made, "__len__") else None


row("utils.data.Sampler utils.data.Subset utils.data.ConcatDataset utils.data.ChainDataset", dataset=[1, 2, 3], indices=[0, 1], datasets=[[1, 2],
    [3]],
    others={"data_source": [[3]], "dataset": [[4, 5, 6]], "indices": [[1, 2]], "datasets": [[[1], [5]]]})
row("utils.data.default_collate", batch=[1.0, 2.0], others={"batch": [[1, 2]]})
PROBES["utils.data.random_split"] = lambda f, **given: [list(part) for part in f(**given)]
row("utils.data.random_split", dataset=[1, 2, 3, 4], lengths=[1, 3], others={"dataset": [[5, 6, 7, 8]], "lengths": [[2, 2]]})
PROBES["utils.checkpoint.checkpoint"] = lambda f, function=None, **given: f((lambda x: x * 2) if function else (lambda x: x * 3), X, **given)
row("utils.checkpoint.checkpoint", function=None, others={"function": [1]})


# ---- The rest of the package
@probe("GradScaler")
def _(cls, device="cuda", **given):
    p = nn.Parameter(own(X))
    o, scaler, out = ingot.optim.SGD([p], lr=0.1), cls(device, **given), []
    for k in range(4):
        o.zero_grad()
        scaler.scale((p * p).sum() * (float("inf") if k == 2 else 1.0)).backward()
        scaler.step(o)
        scaler.update()
        out.append(scaler.get_scale())
    return out


row("GradScaler", growth_interval=1, others={"init_scale": [8.0], "growth_factor": [3.0], "backoff_factor": [0.25], "growth_interval": [2]})


@probe("GradScaler.update")
def _(function, new_scale=None):
    p = nn.Parameter(own(X))
    o, scaler = ingot.optim.SGD([p], lr=0.1), ingot.amp.GradScaler()
    scaler.scale((p * p).sum()).backward()
    scaler.step(o)
    function(scaler, new_scale)
    return scaler.get_scale()


row("GradScaler.update", others={"new_scale": [4.0]})


@probe("amp.autocast")
def _(cls, **given):
    with cls(**given):
        return X @ Y


row("amp.autocast", others={"dtype": [ingot.float16]})


@probe("enable_grad no_grad inference_mode set_grad_enabled")
def _(cls, *given, **named):
    values = list(given) + list(named.values())
    if values and callable(values[0]):
        return type(cls(*given, **named)).__name__, cls(*given, **named)()
    before = ingot.is_grad_enabled()
    with cls(*given, **named):
        out = ingot.is_grad_enabled()
    ingot.autograd.set_grad_enabled(before)
    return out


row("enable_grad no_grad", others={"fn": [lambda: ingot.is_grad_enabled()]})
row("set_grad_enabled", mode=True)
PROBES["set_default_dtype"] = lambda f, d: f(d)
row("set_default_dtype", d=ingot.float32, others={"d": [ingot.float64]})


@probe("set_default_device")
def _(function, device):
    before = ingot.get_default_device()
    try:
        function(device)
        return ingot.zeros(1).device
    finally:
        function(before)


@probe("set_num_threads")
def _(function, n):
    before = ingot.get_num_threads()
    try:
        function(n)
        return ingot.get_num_threads()
    finally:
        function(before)


row("set_num_threads", n=1, others={"n": [2]})


@probe("set_eager set_fusion set_plan_cache_limit")
def _(function, **given):
    """The plan says it: whether anything is left to run, and in how many kernels; a small cache keeps no plan."""
    name = function.__name__
    try:
        function(**given)
        x = ingot.rand(64) + 1
        if name == "set_plan_cache_limit":
            x.tolist()
            return ingot.plan_cache_info()["limit"] if "limit" in ingot.plan_cache_info() else sorted(ingot.plan_cache_info().items())
        return ingot.explain((x * 2).exp().sum(0, True) * 3).launches
    finally:
        function({"set_eager": False, "set_fusion": True, "set_plan_cache_limit": 1 << 28}[name])


row("set_eager set_fusion set_plan_cache_limit", on=False, bytes=1 << 28, others={"bytes": [1 << 20]})
row("device", device=DROP, type="cpu", index=DROP, others={"type": ["null"], "device": [ingot.device("null")], "index": [1]},
    beside={"device": {"type": DROP, "device": ingot.device("cpu")}, "index": {"type": "cpu", "index": 0}})
PROBES["FloatTensor"] = lambda cls, data: cls(data)
PROBES["capture"] = lambda cls, fn: cls((lambda x: x * 2) if fn else (lambda x: x * 3))(X)
row("capture", fn=0, others={"fn": [1]})
PROBES["compile"] = lambda f, model=None: f(model) is model
row("compile", others={"model": [nn.Identity()]})
PROBES["explain"] = lambda f, what, **given: f(X.to(ingot.float64) @ Y.to(ingot.float64) * what, **given).text
row("explain", what=1.0, others={"what": [Y], "rates": ["h200"], "why": [True]})
PROBES["plan"] = lambda f, what: f(X.exp() if what else X @ Y)
row("plan", what=0, others={"what": [1]})


@probe("progress")
def _(cls, items, **given):
    import io
    import re

    class Screen(io.StringIO):
        def isatty(self):
            return True

    screen = Screen()
    if given.pop("file", True) is None:
        import contextlib

        with contextlib.redirect_stderr(io.StringIO()):
            return list(cls(items, **given)), ""
    for _ in cls(items, file=screen, **given):
        pass
    text = screen.getvalue()
    return re.sub(r"[0-9.]+/s|[0-9.]+ s \w+", "", text) if "interval" not in given else text.count("\r") > 1


row("progress", items=[1, 2, 3], others={"items": [[1]], "desc": ["a"], "total": [5], "interval": [0.0], "file": [None]},
    beside={"interval": {"interval": 100.0}})


@probe("save load")
def _(function, **given):
    import os
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "a")
        if function is ingot.load:
            ingot.save({"x": X if given.pop("f") else Y}, path)
            return ingot.load(path, **given)
        function(given["obj"], os.path.join(folder, given["f"]))
        return os.listdir(folder), ingot.load(os.path.join(folder, given["f"]))


row("save", obj={"a": X}, f="a", others={"obj": [{"a": Y}], "f": ["b"]})
row("load", f=0, others={"f": [1], "map_location": ["null"]})
PROBES["random.set_rng_state"] = lambda f, state: [f(state), ingot.random.get_rng_state()]
row("random.set_rng_state", state=ints(3, 4))


@probe("testing.assert_close")
def _(function, actual, expected, **given):
    try:
        return function(actual, expected, **given)
    except (AssertionError, ValueError) as e:
        return str(e)


row("testing.assert_close", actual=X, expected=X, others={"actual": [Y], "expected": [Y], "rtol": [10.0], "atol": [10.0], "msg": ["a"]},
    beside={"rtol": {"expected": X + 1, "rtol": 0.0, "atol": 0.0}, "atol": {"expected": X + 1, "rtol": 0.0, "atol": 0.0}, "msg": {"expected": Y},
            "equal_nan": {"actual": NANS, "expected": NANS}, "check_dtype": {"expected": X.to(ingot.float64)},
                "check_device": {"expected": X.to("null")},
            "allow_subclasses": {"expected": nn.Parameter(X)}})


@probe("Checkpoint")
def _(cls, folder, asynchronous=False, **given):
    """Whether it watches signals, its files, and which call reports that a file cannot be written."""
    import os
    import shutil
    import signal
    import tempfile

    with tempfile.TemporaryDirectory() as place:
        before = signal.getsignal(signal.SIGTERM)
        checkpoint = cls(os.path.join(place, folder), nn.Linear(1, 1), asynchronous=asynchronous, **given)
        watches = signal.getsignal(signal.SIGTERM) != before
        for k in range(5):
            checkpoint.save(k)
        checkpoint.wait()
        files = [os.path.relpath(f, place) for f in checkpoint.files()]
        shutil.rmtree(os.path.join(place, folder))
        reported = "nobody"
        try:
            reported = "save"
            checkpoint.save(9)
            reported = "wait"
            checkpoint.wait()
        except ingot.Error:
            pass
        try:
            checkpoint.close()
        except ingot.Error:
            pass
        return watches, files, reported


row("Checkpoint", folder="a", others={"folder": ["b"], "keep": [2]})
SKIPPED = ["amp.Scope", "autograd.Scope", "compat.Report.add"]
try:
    import torch
except ImportError:
    SKIPPED += ["compat.check", "compat.from_torch", "compat.to_torch"]
else:
    @probe("compat.check")
    def _(function, model, reference, inputs, **given):
        mine, theirs = nn.Linear(4, 3), torch.nn.Linear(4, 3)
        if "rtol" in given:
            with torch.no_grad():
                theirs.weight.add_(0.1)
            given["load"] = False
        try:
            return function(nn.Sequential(mine) if model else mine, torch.nn.Sequential(theirs) if reference else theirs, X[:inputs], **given).rows
        except ingot.Error as e:
            return str(e)

    row("compat.check", model=0, reference=0, inputs=4, others={"model": [1], "reference": [1], "rtol": [1e9]})
    row("compat.from_torch", x=torch.ones(2), others={"x": [torch.zeros(2)]})
    PROBES["compat.to_torch"] = lambda f, x: f(x).tolist()
    row("compat.to_torch", x=X)

# What is accepted with one value only: every other is refused, by name or, where the shapes show it already, because it does not fit them.
REFUSED = {(f"nn.functional.adaptive_max_pool{n}d", "return_indices") for n in (1, 2, 3)}
REFUSED |= {(f"conv{n}d", "groups") for n in (1, 2, 3)} | {(f"nn.ConvTranspose{n}d", "padding_mode") for n in (1, 2, 3)}
REFUSED |= {("nn.functional.fold", "kernel_size"), ("nn.functional.fold", "stride")}
REFUSED |= {(n, k) for n in ("nn.Embedding", "nn.functional.embedding") for k in ("max_norm", "scale_grad_by_freq", "sparse")}
REFUSED |= {("nn.GRU", "proj_size"), ("nn.MultiheadAttention", "add_bias_kv"), ("nn.MultiheadAttention", "add_zero_attn")}
REFUSED |= {("nn.functional.interpolate", "antialias"), ("autograd.grad", "only_inputs"), ("autograd.grad", "is_grads_batched")}
REFUSED |= {(n, "output_size") for n in ("repeat_interleave", "Tensor.repeat_interleave")} | {("Tensor.to_device", "stream"), ("set_default_dtype",
    "d")}
REFUSED |= {(f"optim.{n}", "differentiable") for n in "SGD Adam AdamW RMSprop Adagrad Adadelta Adamax NAdam RAdam Lion Muon".split()}
REFUSED |= {("optim.lr_scheduler.ChainedScheduler", "optimizer")}
