"""Docstrings of what is written in Python: where a function or class has none, the comment of the C++ one of that name, or a line here."""
from types import FunctionType

from . import _ingot


def fill(namespace, prefix=""):
    """Sets the docstrings of the functions and classes in a dict; prefix is put before the names ("Module." for methods)."""
    for name, value in namespace.items():
        if isinstance(value, (FunctionType, type)) and not value.__doc__ and not name.startswith("_"):
            text = _LINES.get(prefix + name) or _ingot.doc_of(prefix + name) or _ingot.doc_of(_OTHER_NAMES.get(name, ""))
            if text:
                value.__doc__ = text


# Functions of the core under another name.
_OTHER_NAMES = {"bitwise_invert": "bitwise_not", "concat": "cat", "cumulative_prod": "cumprod", "cumulative_sum": "cumsum", "divide": "div",
                "equal": "eq", "expand_dims": "unsqueeze", "greater": "gt", "greater_equal": "ge", "less": "lt", "less_equal": "le",
                "matrix_transpose": "mT", "max": "amax", "min": "amin", "moveaxis": "movedim", "multiply": "mul", "negative": "neg",
                "not_equal": "ne", "permute_dims": "permute", "repeat": "repeat_interleave", "subtract": "sub", "swish": "silu",
                "take_along_axis": "gather", "trapz": "trapezoid", "unique_values": "unique", "unstack": "unbind"}

_LINES = {
    # Functions
    "adjoint": "The last two dims swapped.",
    "can_cast": "May values of the first dtype be put into the second by PyTorch's rules?",
    "cartesian_prod": "Every combination of the vectors' elements, one per row.",
    "chain_matmul": "The product of matrices in the cheapest order.",
    "clone": "A copy; gradients flow through it.",
    "combinations": "The combinations of r elements of a vector, one per row.",
    "cumulative_trapezoid": "Running integral by the trapezoid rule along dim.",
    "detach": "The same values without a history: no gradient flows back.",
    "diagonal_scatter": "A copy of input with src on a diagonal.",
    "diff": "Differences of neighbours along dim, n times.",
    "dist": "The p-norm of input - other.",
    "dsplit": "Pieces along dim 2.",
    "hsplit": "Pieces along dim 1 (dim 0 of a vector).",
    "vsplit": "Pieces along dim 0.",
    "iinfo": "What an integer dtype holds: bits, max, min.",
    "is_floating_point": "Is the dtype a floating one?",
    "is_grad_enabled": "Are gradients recorded on this thread?",
    "is_nonzero": "The truth of a tensor of one element.",
    "is_tensor": "Is obj a Tensor?",
    "isin": "bool: which elements are among test_elements?",
    "isreal": "bool: all true, as there are no complex types.",
    "numel": "The number of elements.",
    "poisson_nll_loss": "The negative log likelihood of target under Poisson distributions whose (log) rates are input.",
    "positive": "The input itself.",
    "promote_types": "The dtype that an operation of the two computes in.",
    "renorm": "Slices along dim whose p-norm is above maxnorm scaled down to it.",
    "scalar_tensor": "A 0-d tensor.",
    "select_scatter": "A copy of input with src at one index of dim.",
    "slice_scatter": "A copy of input with src in a slice of dim.",
    "swish": "x * sigmoid(x).",
    "trapezoid": "The integral by the trapezoid rule along dim.",
    "trapz": "The integral by the trapezoid rule along dim.",
    "vander": "The Vandermonde matrix: powers of x as columns.",
    "view_copy": "A copy in another shape.",
    "get_default_dtype": "The default floating dtype: float32.",
    "set_default_dtype": "Only float32 may be given.",
    "gradgradcheck": "gradcheck() of the gradients.",
    # nn.functional
    "alpha_dropout": "Dropout that keeps mean and variance, for selu.",
    "bilinear": "x1^T W x2 + bias for each row.",
    "dropout1d": "Dropout of channels.", "dropout2d": "Dropout of channels.", "dropout3d": "Dropout of channels.",
    # special
    "erfcx": "exp(x^2) * erfc(x).", "multigammaln": "Logarithm of the multivariate gamma function.",
    "ndtri": "The value below which that share of the normal distribution is.", "xlog1py": "input * log1p(other), 0 where input is 0.",
    # utils.data
    "BatchSampler": "Lists of batch_size indices from a sampler.", "ChainDataset": "Iterable data sets one after the other.",
    "RandomSampler": "The indices in random order, with or without replacement.", "Sampler": "The source of a DataLoader's indices.",
    "SequentialSampler": "The indices in order.", "SubsetRandomSampler": "Given indices in random order.",
    "WeightedRandomSampler": "Indices drawn by weights.",
    # nn
    "BatchNorm1d": "Normalises each channel over the batch, with running statistics for eval().",
    "BatchNorm2d": "Normalises each channel over the batch, with running statistics for eval().",
    "BatchNorm3d": "Normalises each channel over the batch, with running statistics for eval().",
    "ChannelShuffle": "Interleaves the channels of the groups.", "CosineSimilarity": "The cosine of the angle between vectors along dim.",
    "Conv1d": "Convolution with a weight [out, in / groups, window] and a bias.",
    "Conv2d": "Convolution with a weight [out, in / groups, height, width] and a bias.",
    "Conv3d": "Convolution with a weight [out, in / groups, depth, height, width] and a bias.",
    "ConvTranspose1d": "The gradient of Conv1d with respect to its input, as a layer.",
    "ConvTranspose2d": "The gradient of Conv2d with respect to its input, as a layer.",
    "ConvTranspose3d": "The gradient of Conv3d with respect to its input, as a layer.",
    "Fold": "Sums windows back into an image.", "Unfold": "The windows of an image as columns.",
    "GRUCell": "One step of a GRU.", "LSTMCell": "One step of an LSTM.", "Identity": "The input itself.",
    "InstanceNorm1d": "Normalises each channel of each sample.", "InstanceNorm2d": "Normalises each channel of each sample.",
    "InstanceNorm3d": "Normalises each channel of each sample.", "LocalResponseNorm": "Normalises over neighbouring channels.",
    "PairwiseDistance": "The p-norm of the rows' differences.", "RReLU": "leaky_relu with a slope drawn at random in training.",
    "TransformerDecoder": "Decoder layers, one after the other.", "TransformerDecoderLayer": "Self-attention, attention to memory, feed-forward.",
    "TransformerEncoderLayer": "Self-attention and feed-forward, with residuals and norms.",
    "constant_": "Fills with val.", "ones_": "Fills with 1.", "zeros_": "Fills with 0.",
    "kaiming_normal_": "Normal values that keep the variance through layers with this nonlinearity.",
    "kaiming_uniform_": "Uniform values that keep the variance through layers with this nonlinearity.",
    "xavier_normal_": "Normal values that keep the variance forward and backward.",
    "xavier_uniform_": "Uniform values that keep the variance forward and backward.",
    # nn.Module
    "Module.add_module": "Makes module a part under this name.", "Module.register_module": "Makes module a part under this name.",
    "Module.bfloat16": "Floating parameters and buffers as bfloat16.", "Module.half": "Floating parameters and buffers as float16.",
    "Module.float": "Floating parameters and buffers as float32.", "Module.double": "Floating parameters and buffers as float64.",
    "Module.cpu": "Moves parameters and buffers to the CPU.", "Module.cuda": "Moves parameters and buffers to a GPU.",
    "Module.buffers": "All buffers.", "Module.named_buffers": "All buffers by their paths.",
    "Module.children": "The direct parts of this module.", "Module.named_children": "The direct parts of this module by their names.",
    "Module.modules": "This module and every one below.", "Module.named_parameters": "All parameters by their paths.",
    "Module.compile": "Nothing to do: what is recorded is compiled anyway.", "Module.eval": "train(False).",
    "Module.extra_repr": "The text in the parentheses of the printed form; for subclasses to define.",
    "Module.get_parameter": "A parameter by its path.", "Module.get_submodule": "A part by its path.",
    "Module.share_memory": "The module itself: threads share memory anyway.",
    "Module.apply": "Calls fn for every module below and then for this one.",
    "Module.forward": "What the module computes; for subclasses to define.",
    # cuda
    "device_count": "The number of GPUs.", "is_bf16_supported": "Does the GPU compute with bfloat16?",
    "memory_allocated": "Bytes of the GPU's memory in use.", "max_memory_allocated": "The most bytes that were in use.",
    "reset_peak_memory_stats": "Restarts max_memory_allocated().",
    # Tensor
    "detach_": "detach() in place.", "fill_diagonal_": "Writes value on a matrix's diagonal.",
    "is_signed": "Does the dtype have negative numbers?", "pin_memory": "The tensor itself.", "share_memory_": "The tensor itself.",
    "to_device": "to(device), the array API's name.", "type": "The dtype's name, or the tensor as another dtype.",
    "new_empty": "empty() with this tensor's dtype and device.", "new_full": "full() with this tensor's dtype and device.",
    "new_ones": "ones() with this tensor's dtype and device.", "new_zeros": "zeros() with this tensor's dtype and device.",
    "new_tensor": "tensor() with this tensor's dtype and device.",
    # The array API
    "astype": "The array as another dtype.", "broadcast_arrays": "The arrays in the shape they broadcast to.",
    "count_nonzero": "How many elements are not 0.", "finfo": "What a floating dtype holds.", "isdtype": "Is the dtype of this kind?",
    "imag": "Raises: there are no complex types.", "real": "The array itself.", "conj": "The array itself.",
    "nonzero": "The indices of elements that are not 0, one array per dim.", "std": "The square root of var().",
    "unique_all": "The different values, where they first occur, which one each element is, and how often they occur.",
    "unique_counts": "The different values and how often they occur.",
    "unique_inverse": "The different values and which one each element is.",
    "asarray": "An array of any array, buffer, DLPack object, number or nested list.",
    "full_like": "fill_value in the shape of x.",
    "from_dlpack": "An array over the memory of an object with __dlpack__.",
}
