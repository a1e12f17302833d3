"""Every keyword of nn.functional's functions acts or is refused: for each there is a call without it and one with another value, and
the results must differ or the second must raise. The keywords are read from the signatures: a new one without a row here fails."""
import inspect
import unittest

from common import TestCase, ingot

F = ingot.nn.functional

# Hints: they may be given and cannot change a result (docs/python.md).
HINTS = {("softmax", "_stacklevel"), ("log_softmax", "_stacklevel"), ("softmin", "_stacklevel"), ("gumbel_softmax", "eps"),
         ("embedding", "norm_type")}  # the kind of max_norm, which is refused
OWN_TEST = {("scaled_dot_product_attention", "enable_gqa")}


def t(*shape, low=-1.0, high=1.0):
    n = 1
    for s in shape:
        n *= s
    return (ingot.arange(n, dtype=ingot.float32) * 7 % 11 / 11 * (high - low) + low).reshape(shape)


def classes(*numbers):
    return ingot.tensor(list(numbers))


def logits():
    return t(3, 4)


X, P, IMAGE, LINE = t(2, 6), t(2, 6, low=0.1, high=0.9), t(1, 4, 6, 6), t(1, 2, 8)
OLD = {"size_average": False, "reduce": False, "reduction": "sum"}
PAIR = (t(3, 4), t(3, 4, low=0.0, high=1.0))
SIGNS = ingot.tensor([1.0, -1.0, 1.0])
POOL = {"stride": 1, "padding": 1, "dilation": 2, "ceil_mode": True, "return_indices": True}
DROP = {"p": 0.9, "training": None, "inplace": True}
INPLACE = {"inplace": True}

# name: (arguments, {keyword: another value}); a dict in place of the arguments' third gives keywords that the call needs.
CALLS = {
    "adaptive_max_pool1d": ((LINE, 3), {"return_indices": True}), "adaptive_max_pool2d": ((IMAGE, 3), {"return_indices": True}),
    "adaptive_max_pool3d": ((t(1, 1, 4, 4, 4), 2), {"return_indices": True}),
    "max_pool1d": ((LINE[..., :7], 2), POOL), "max_pool2d": ((IMAGE[..., :5], 2), POOL), "max_pool3d": ((t(1, 1, 5, 5, 5), 2), POOL),
    "alpha_dropout": ((X,), {"p": 0.9, "training": None, "inplace": True}, {"training": True}),
    "dropout": ((X,), DROP), "dropout1d": ((t(1, 8, 4),), DROP), "dropout2d": ((IMAGE,), DROP), "dropout3d": ((t(1, 8, 2, 2, 2),), DROP),
    "batch_norm": ((X, ingot.zeros(6), ingot.ones(6)), {"weight": t(6), "bias": t(6), "training": True, "momentum": 0.5, "eps": 1.0}),
    "bilinear": ((t(2, 3), t(2, 4), t(5, 3, 4)), {"bias": t(5)}),
    "group_norm": ((IMAGE, 2), {"weight": t(4), "bias": t(4), "eps": 1.0}),
    "instance_norm": ((IMAGE,), {"running_mean": ingot.ones(4), "running_var": ingot.ones(4), "weight": t(4), "bias": t(4),
                                 "use_input_stats": False, "momentum": 0.5, "eps": 1.0}),
    "local_response_norm": ((IMAGE, 2), {"alpha": 1.0, "beta": 0.1, "k": 2.0}),
    "embedding": ((classes(0, 1), t(3, 2)), {"padding_idx": 1, "max_norm": 0.1, "scale_grad_by_freq": True,
                                             "sparse": True}),
    "one_hot": ((classes(0, 1),), {"num_classes": 5}),
    "pad": ((X, (1, 2)), {"mode": "reflect", "value": 3.0}),
    "unfold": ((IMAGE, 2), {"dilation": 2, "padding": 1, "stride": 2}),
    "fold": ((t(1, 4, 25), (6, 6), 2), {"dilation": 2, "padding": 1, "stride": 2}),
    "interpolate": ((IMAGE, 3), {"size": 4, "scale_factor": 2.0, "mode": "bilinear", "align_corners": True, "recompute_scale_factor": True,
                                 "antialias": True}),
    "upsample": ((IMAGE, 3), {"size": 4, "scale_factor": 2.0, "mode": "bilinear", "align_corners": True, "recompute_scale_factor": True,
                              "antialias": True}),
    "softmax": ((X,), {"dim": 0, "dtype": ingot.float64}), "log_softmax": ((X,), {"dim": 0, "dtype": ingot.float64}),
    "softmin": ((X,), {"dim": 0, "dtype": ingot.float64}), "softplus": ((X,), {"beta": 2.0, "threshold": 0.1}),
    "relu": ((X,), INPLACE), "silu": ((X,), INPLACE), "selu": ((X,), INPLACE), "relu6": ((X,), INPLACE), "mish": ((X,), INPLACE),
    "hardswish": ((X,), INPLACE), "hardsigmoid": ((X,), INPLACE),
    "leaky_relu": ((X,), {"negative_slope": 0.5, **INPLACE}), "elu": ((X,), {"alpha": 2.0, **INPLACE}),
    "celu": ((X,), {"alpha": 2.0, **INPLACE}), "hardtanh": ((X * 3,), {"min_val": -0.1, "max_val": 0.1, **INPLACE}),
    "threshold": ((X, 0.1, 5.0), INPLACE), "rrelu": ((X,), {"lower": 0.5, "upper": 0.9, "training": True, **INPLACE}),
    "hardshrink": ((X,), {"lambd": 0.1}), "softshrink": ((X,), {"lambd": 0.1}), "glu": ((X,), {"dim": 0}),
    "gumbel_softmax": ((X,), {"tau": 5.0, "hard": True, "dim": 0}), "normalize": ((X,), {"p": 1.0, "dim": 0, "eps": 10.0}),
    "cosine_similarity": ((X, P), {"dim": 0, "eps": 10.0}), "pairwise_distance": ((X, P), {"p": 1.0, "eps": 1.0, "keepdim": True}),
    "scaled_dot_product_attention": ((t(1, 2, 3, 4), t(1, 2, 3, 4), t(1, 2, 3, 4)), {
        "attn_mask": ingot.ones(3, 3, dtype=ingot.bool_).tril(), "dropout_p": 0.9, "is_causal": True, "scale": 3.0}),
    "cross_entropy": ((logits(), classes(0, 1, 2)), {"weight": t(4, low=0.1), "ignore_index": 1, "label_smoothing": 0.5, **OLD}),
    "nll_loss": ((logits(), classes(0, 1, 2)), {"weight": t(4, low=0.1), "ignore_index": 0, **OLD}),
    "mse_loss": (PAIR, {"weight": t(3, 4, low=0.1), **OLD}), "l1_loss": (PAIR, {"weight": t(3, 4, low=0.1), **OLD}),
    "smooth_l1_loss": (PAIR, {"beta": 0.1, **OLD}), "huber_loss": (PAIR, {"reduction": "sum", "delta": 0.1, "weight": t(3, 4, low=0.1)}),
    "binary_cross_entropy": ((P, P), {"weight": t(2, 6, low=0.1), **OLD}),
    "binary_cross_entropy_with_logits": ((X, P), {"weight": t(2, 6, low=0.1), "pos_weight": t(6, low=2.0, high=3.0), **OLD}),
    "kl_div": (PAIR, {"log_target": True, **OLD}),
    "hinge_embedding_loss": ((t(3), SIGNS), {"margin": 3.0, **OLD}),
    "margin_ranking_loss": ((t(3), t(3, low=0.0), SIGNS), {"margin": 3.0, **OLD}),
    "cosine_embedding_loss": ((t(3, 4), t(3, 4, low=0.0), SIGNS), {"margin": -0.5, **OLD}),
    "triplet_margin_loss": ((t(3, 4), t(3, 4, low=0.0), t(3, 4, low=0.5)), {"margin": 3.0, "p": 1, "eps": 1.0, "swap": True, **OLD}),
    "soft_margin_loss": ((t(3), SIGNS), OLD),
    "poisson_nll_loss": ((P, P + 2), {"log_input": False, "full": True, "eps": None, **OLD}),
    "gaussian_nll_loss": ((X, P, P), {"full": True, "eps": 0.5, "reduction": "sum"}),
    "multilabel_soft_margin_loss": (PAIR, {"weight": t(4, low=0.1), **OLD}),
}


def own(arguments):
    return tuple(a.clone() if isinstance(a, ingot.Tensor) else a for a in arguments)


def seen(function, arguments, **options):
    """What a call gives, what it leaves in its arguments and where gradients go, as lists; or the error's name."""
    ingot.manual_seed(1)
    arguments = own(arguments)
    options = {k: v.clone() if isinstance(v, ingot.Tensor) else v for k, v in options.items()}
    for a in arguments:
        if isinstance(a, ingot.Tensor) and a.is_floating_point() and not options.get("inplace") and "running_mean" not in options:
            a.requires_grad_(function is F.embedding)
    try:
        out = function(*arguments, **options)
        outs = out if isinstance(out, tuple) else (out,)
        if function is F.embedding:
            out.sum().backward()
            outs += (arguments[1].grad,)
        extra = [v for v in options.values() if isinstance(v, ingot.Tensor)]
        return [(str(o.dtype), list(o.shape), o.tolist()) for o in outs + tuple(a for a in arguments if isinstance(a, ingot.Tensor)) + tuple(extra)]
    except (RuntimeError, TypeError, ValueError, NotImplementedError) as e:
        return type(e).__name__


class Keywords(TestCase):
    def test_every_keyword_acts_or_is_refused(self):
        functions = {n: f for n, f in vars(F).items() if inspect.isfunction(f) and not n.startswith("_")}
        for name, function in functions.items():
            keywords = {k for k, p in inspect.signature(function).parameters.items() if p.default is not inspect.Parameter.empty and (name, k) not in HINTS | OWN_TEST}
            if not keywords:
                continue
            self.assertIn(name, CALLS, f"{name}() has keywords and no row in this table")
            arguments, rows, *base = CALLS[name]
            base = base[0] if base else {}
            self.assertEqual(keywords, set(rows), f"the row of {name}() must have its keywords")
            plain = seen(function, arguments, **base)
            self.assertNotIsInstance(plain, str, f"{name}() without keywords: {plain}")
            for keyword, value in rows.items():
                with self.subTest(f"{name}({keyword}={value})"):
                    self.assertTrue(seen(function, arguments, **{**base, **self.options(name, keyword, value)})
                                    != seen(function, arguments, **{**base, **self.partner(name, keyword)}), "it changes nothing")

    def test_fewer_heads_of_keys(self):
        q, k = t(1, 4, 3, 2), t(1, 2, 3, 2)
        with self.assertRaises(RuntimeError):
            F.scaled_dot_product_attention(q, k, k).tolist()
        self.assertEqual(tuple(F.scaled_dot_product_attention(q, k, k, enable_gqa=True).shape), (1, 4, 3, 2))

    @staticmethod
    def options(name, keyword, value):
        """The call that shows a keyword: some need another one beside them."""
        if value is None:
            value = {"training": False, "eps": 0.5}[keyword]
        return {**Keywords.partner(name, keyword), keyword: value}

    @staticmethod
    def partner(name, keyword):
        beside = {("batch_norm", "momentum"): {"training": True}, ("rrelu", "lower"): {"training": True}, ("rrelu", "upper"): {"training": True},
                  ("poisson_nll_loss", "eps"): {"log_input": False},
                  ("instance_norm", "momentum"): {"running_mean": ingot.ones(4), "running_var": ingot.ones(4)},
                  ("instance_norm", "running_var"): {"running_mean": ingot.ones(4)},
                  ("interpolate", "align_corners"): {"mode": "bilinear"}, ("upsample", "align_corners"): {"mode": "bilinear"}}
        return beside.get((name, keyword), {})


if __name__ == "__main__":
    unittest.main()
