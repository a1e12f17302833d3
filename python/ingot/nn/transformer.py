"""Multi-head attention and the Transformer's layers."""
import copy

from .. import _ingot
from . import functional as F
from . import init
from .containers import ModuleList
from .layers import Dropout, LayerNorm, Linear
from .module import Module, Parameter


class _OutProjection(Linear):
    """The last product of attention, with PyTorch's class name in its path."""


class MultiheadAttention(Module):
    """PyTorch's, with its parameters' names; returns the output and, with need_weights, the weights."""

    def __init__(self, embed_dim, num_heads, dropout=0.0, bias=True, add_bias_kv=False, add_zero_attn=False, kdim=None, vdim=None,
                 batch_first=False, device=None, dtype=None):
        super().__init__()
        if embed_dim % num_heads:
            raise _ingot.ValueError(f"[MultiheadAttention] {embed_dim} cannot be split into {num_heads} heads")
        if add_bias_kv or add_zero_attn:
            raise _ingot.UnsupportedError("[MultiheadAttention] add_bias_kv and add_zero_attn are not supported")
        self.embed_dim, self.num_heads, self.dropout, self.batch_first = embed_dim, num_heads, dropout, batch_first
        self.head_dim = embed_dim // num_heads
        made = dict(device=device, dtype=dtype)
        same = kdim in (None, embed_dim) and vdim in (None, embed_dim)
        if same:
            self.in_proj_weight = Parameter(_ingot.empty(3 * embed_dim, embed_dim, **made))
            init.xavier_uniform_(self.in_proj_weight)
        else:
            self.register_parameter("in_proj_weight", None)
            for name, width in (("q", embed_dim), ("k", kdim or embed_dim), ("v", vdim or embed_dim)):
                p = Parameter(_ingot.empty(embed_dim, width, **made))
                init.xavier_uniform_(p)
                self.register_parameter(name + "_proj_weight", p)
        self.register_parameter("in_proj_bias", Parameter(_ingot.zeros(3 * embed_dim, **made)) if bias else None)
        self.out_proj = _OutProjection(embed_dim, embed_dim, bias, **made)
        if bias:
            init.zeros_(self.out_proj.bias)

    def _projections(self, query, key, value):
        biases = self.in_proj_bias.chunk(3) if self.in_proj_bias is not None else (None,) * 3
        if self.in_proj_weight is not None:
            if query is key and key is value:
                return F.linear(query, self.in_proj_weight, self.in_proj_bias).chunk(3, -1)
            weights = self.in_proj_weight.chunk(3)
        else:
            weights = (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight)
        return tuple(F.linear(x, w, b) for x, w, b in zip((query, key, value), weights, biases))

    def _mask(self, attn_mask, key_padding_mask, n, dtype):
        """One mask, added to the scores, of the two; PyTorch's bools mark what to hide."""
        mask = None
        if attn_mask is not None:
            m = attn_mask if attn_mask.dim() == 2 else attn_mask.reshape(n, self.num_heads, *attn_mask.shape[-2:])
            mask = _ingot.where(m, float("-inf"), 0.0).to(dtype) if m.dtype is _ingot.bool_ else m
        if key_padding_mask is not None:
            m = key_padding_mask.reshape(n, 1, 1, -1)
            m = _ingot.where(m, float("-inf"), 0.0).to(dtype) if m.dtype is _ingot.bool_ else m
            mask = m if mask is None else mask + m
        return mask

    def forward(self, query, key, value, key_padding_mask=None, need_weights=True, attn_mask=None, average_attn_weights=True,
                is_causal=False):
        batched = query.dim() == 3
        if not batched:
            query, key, value = (x.unsqueeze(0) for x in (query, key, value))
            key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
        elif not self.batch_first:
            same = query is key and key is value
            query = query.transpose(0, 1)
            key, value = (query, query) if same else (key.transpose(0, 1), value.transpose(0, 1))
        n, length = query.size(0), query.size(1)
        q, k, v = (x.reshape(n, x.size(1), self.num_heads, self.head_dim).transpose(1, 2) for x in self._projections(query, key, value))
        p = self.dropout if self.training else 0.0
        causal = is_causal and key_padding_mask is None and not need_weights
        if is_causal and attn_mask is None and not causal:
            attn_mask = _ingot.ones(length, k.size(-2), dtype=_ingot.bool_, device=q.device).triu(1)
        mask = None if causal else self._mask(attn_mask, key_padding_mask, n, q.dtype)
        weights = None
        if need_weights:
            scores = q @ k.transpose(-2, -1) * self.head_dim**-0.5
            weights = F.softmax(scores if mask is None else scores + mask, -1)
            out = F.dropout(weights, p, self.training) @ v
        else:
            out = F.scaled_dot_product_attention(q, k, v, mask, p, causal)
        out = self.out_proj(out.transpose(1, 2).reshape(n, length, self.embed_dim))
        if need_weights and average_attn_weights:
            weights = weights.mean(1)
        if not batched:
            return out.squeeze(0), None if weights is None else weights.squeeze(0)
        return out if self.batch_first else out.transpose(0, 1), weights


class _Block(Module):
    """Feed-forward part and options shared by encoder and decoder layers."""

    def _feed_forward(self, x):
        return self.linear2(self.dropout(self.activation(self.linear1(x))))

    def _make(self, d_model, dim_feedforward, dropout, activation, eps, norm_first, bias, norms, made):
        self.linear1 = Linear(d_model, dim_feedforward, bias, **made)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias, **made)
        self.norm_first = norm_first
        for i in range(norms):
            setattr(self, f"norm{i + 1}", LayerNorm(d_model, eps, bias=bias, **made))
        for i in range(norms):
            setattr(self, f"dropout{i + 1}", Dropout(dropout))
        if isinstance(activation, str) and activation not in ("relu", "gelu"):
            raise _ingot.ValueError(f"[{type(self).__name__}] activation is 'relu', 'gelu' or a function, not {activation!r}")
        self.activation = {"relu": F.relu, "gelu": F.gelu}[activation] if isinstance(activation, str) else activation


class TransformerEncoderLayer(_Block):
    def __init__(self, d_model, nhead, dim_feedforward=2048, dropout=0.1, activation="relu", layer_norm_eps=1e-5, batch_first=False,
                 norm_first=False, bias=True, device=None, dtype=None):
        super().__init__()
        made = dict(device=device, dtype=dtype)
        self.self_attn = MultiheadAttention(d_model, nhead, dropout, bias, batch_first=batch_first, **made)
        self._make(d_model, dim_feedforward, dropout, activation, layer_norm_eps, norm_first, bias, 2, made)

    def forward(self, src, src_mask=None, src_key_padding_mask=None, is_causal=False):
        def attend(x):
            return self.dropout1(self.self_attn(x, x, x, src_key_padding_mask, False, src_mask, is_causal=is_causal)[0])

        if self.norm_first:
            src = src + attend(self.norm1(src))
            return src + self.dropout2(self._feed_forward(self.norm2(src)))
        src = self.norm1(src + attend(src))
        return self.norm2(src + self.dropout2(self._feed_forward(src)))


class TransformerDecoderLayer(_Block):
    def __init__(self, d_model, nhead, dim_feedforward=2048, dropout=0.1, activation="relu", layer_norm_eps=1e-5, batch_first=False,
                 norm_first=False, bias=True, device=None, dtype=None):
        super().__init__()
        made = dict(device=device, dtype=dtype)
        self.self_attn = MultiheadAttention(d_model, nhead, dropout, bias, batch_first=batch_first, **made)
        self.multihead_attn = MultiheadAttention(d_model, nhead, dropout, bias, batch_first=batch_first, **made)
        self._make(d_model, dim_feedforward, dropout, activation, layer_norm_eps, norm_first, bias, 3, made)

    def forward(self, tgt, memory, tgt_mask=None, memory_mask=None, tgt_key_padding_mask=None, memory_key_padding_mask=None,
                tgt_is_causal=False, memory_is_causal=False):
        def look(x):
            return self.dropout1(self.self_attn(x, x, x, tgt_key_padding_mask, False, tgt_mask, is_causal=tgt_is_causal)[0])

        def remember(x):
            return self.dropout2(self.multihead_attn(x, memory, memory, memory_key_padding_mask, False, memory_mask,
                                                     is_causal=memory_is_causal)[0])

        if self.norm_first:
            tgt = tgt + look(self.norm1(tgt))
            tgt = tgt + remember(self.norm2(tgt))
            return tgt + self.dropout3(self._feed_forward(self.norm3(tgt)))
        tgt = self.norm1(tgt + look(tgt))
        tgt = self.norm2(tgt + remember(tgt))
        return self.norm3(tgt + self.dropout3(self._feed_forward(tgt)))


class TransformerEncoder(Module):
    def __init__(self, encoder_layer, num_layers, norm=None, enable_nested_tensor=True, mask_check=True):
        super().__init__()
        self.layers = ModuleList([copy.deepcopy(encoder_layer) for _ in range(num_layers)])
        self.num_layers, self.norm = num_layers, norm

    def forward(self, src, mask=None, src_key_padding_mask=None, is_causal=False):
        for layer in self.layers:
            src = layer(src, mask, src_key_padding_mask, bool(is_causal))
        return src if self.norm is None else self.norm(src)


class TransformerDecoder(Module):
    def __init__(self, decoder_layer, num_layers, norm=None):
        super().__init__()
        self.layers = ModuleList([copy.deepcopy(decoder_layer) for _ in range(num_layers)])
        self.num_layers, self.norm = num_layers, norm

    def forward(self, tgt, memory, tgt_mask=None, memory_mask=None, tgt_key_padding_mask=None, memory_key_padding_mask=None,
                tgt_is_causal=False, memory_is_causal=False):
        for layer in self.layers:
            tgt = layer(tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask, bool(tgt_is_causal), memory_is_causal)
        return tgt if self.norm is None else self.norm(tgt)


class Transformer(Module):
    def __init__(self, d_model=512, nhead=8, num_encoder_layers=6, num_decoder_layers=6, dim_feedforward=2048, dropout=0.1,
                 activation="relu", custom_encoder=None, custom_decoder=None, layer_norm_eps=1e-5, batch_first=False, norm_first=False,
                 bias=True, device=None, dtype=None):
        super().__init__()
        options = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias, device, dtype)
        made = dict(device=device, dtype=dtype)
        self.encoder = custom_encoder or TransformerEncoder(TransformerEncoderLayer(*options), num_encoder_layers,
                                                            LayerNorm(d_model, layer_norm_eps, bias=bias, **made))
        self.decoder = custom_decoder or TransformerDecoder(TransformerDecoderLayer(*options), num_decoder_layers,
                                                            LayerNorm(d_model, layer_norm_eps, bias=bias, **made))
        for p in self.parameters():
            if p.dim() > 1:
                init.xavier_uniform_(p)

    def forward(self, src, tgt, src_mask=None, tgt_mask=None, memory_mask=None, src_key_padding_mask=None, tgt_key_padding_mask=None,
                memory_key_padding_mask=None, src_is_causal=None, tgt_is_causal=None, memory_is_causal=False):
        memory = self.encoder(src, src_mask, src_key_padding_mask, src_is_causal)
        return self.decoder(tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask, tgt_is_causal, memory_is_causal)

    @staticmethod
    def generate_square_subsequent_mask(sz, device=None, dtype=None):
        return _ingot.full((sz, sz), float("-inf"), device=device, dtype=dtype).triu(1)


__all__ = ["MultiheadAttention", "Transformer", "TransformerDecoder", "TransformerDecoderLayer", "TransformerEncoder",
           "TransformerEncoderLayer"]
