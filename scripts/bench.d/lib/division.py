"""What dividing experts between GPU and host can gain at most over all experts on the GPU.

A calculation, not a simulation: a layer in the middle of the pipeline of `hearth simulate step`, whose
GPU, host cores and link in each direction each work all the time or wait for the slowest of them.
Rates and shapes are those of src/study. Nothing waits for a decision, and no bubble is counted.
"""

SHAPES = {"S-8": (1024, 4096, 8), "S-16": (1024, 4096, 16), "S-64": (1024, 4096, 64),
          "M-8": (2048, 8192, 8), "M-16": (2048, 8192, 16), "L-8": (4096, 14336, 8)}
SEQUENCE, TOP_K, F32 = 128, 2, 4
GPU_FLOPS, GPU_BYTES, LAUNCH = 17e12, 1.3e12, 30e-6
CORE_FLOPS, CORE_BYTES, LINK = 150e9, 5.5e9, 10.5e9
POINTS = (("S-8", .2, 128), ("S-8", .8, 128), ("S-16", .1, 128), ("S-16", .4, 128),
          ("S-16", .3, 16), ("S-16", .3, 256), ("S-64", .15, 128), ("M-8", .8, 16),
          ("M-16", .4, 16), ("M-16", .3, 128), ("L-8", .8, 8))


def shares(experts, skew):
    """Of all choices by rank: Zipf's law whose first choices have this G, two choices a token."""
    def law(exponent):
        weights = [rank ** -exponent for rank in range(1, experts + 1)]
        return [w / sum(weights) for w in weights]
    low, high = 0.0, 30.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if sum(p * p for p in law(middle)) < skew else (low, middle)
    first = law(low)
    second = [sum(p * first[e] / (1 - p) for other, p in enumerate(first) if other != e)
              for e in range(experts)]
    return [(a + b) / 2 for a, b in zip(first, second)]


class Layer:
    """Seconds of a layer, of all micro-batches, with its k hottest experts on the GPU."""

    def __init__(self, shape, skew, batch, updates, cores=14, micro_batches=4):
        self.hidden, width, self.experts = SHAPES[shape]
        self.tokens, self.parts = batch * SEQUENCE, micro_batches
        self.expert = 2 * self.hidden * width  # parameters
        self.rows = [TOP_K * self.tokens * share for share in shares(self.experts, skew)]
        self.flops, self.bytes = cores * CORE_FLOPS, cores * CORE_BYTES
        attention = 4 * self.hidden ** 2
        self.attention_s = F32 * attention / LINK
        per_token = attention + SEQUENCE * self.hidden
        self.dense = [self.parts * LAUNCH + 2 * k * per_token * self.tokens / GPU_FLOPS
                      for k in (1, 2)]
        parameters = self.experts * self.expert + attention
        self.update_s = 7 * F32 * parameters / self.bytes if updates else 0

    def gpu(self, products, rows):
        weights = F32 * (3 if products == 2 else 1) * self.expert / GPU_BYTES
        return self.parts * (LAUNCH + max(2 * products * self.expert * rows / self.parts / GPU_FLOPS,
                                          weights))

    def host(self, products, rows):
        """`products` of a forward; each reads the weights, and backward writes gradients, too."""
        passes = products + (1 if products > 1 else 0)
        return self.parts * max(2 * products * self.expert * rows / self.parts / self.flops,
                                F32 * passes * self.expert / self.bytes)

    def back(self, k):
        return sum(F32 * self.hidden * rows / LINK for rows in self.rows[k:])

    def forward(self, k):
        return max(self.dense[0] + sum(self.gpu(1, n) for n in self.rows[:k]),
                   self.update_s + sum(self.host(1, n) for n in self.rows[k:]),
                   self.attention_s + k * F32 * self.expert / LINK + self.back(k))

    def backward(self, k, again=False):
        """`again`: what was saved lies at the other place, so the host computes forward once more."""
        return max(self.dense[1] + sum(self.gpu(2, n) for n in self.rows[:k]),
                   sum(self.host(3 if again else 2, n) for n in self.rows[k:]),
                   self.attention_s + k * F32 * self.expert / LINK +
                   (F32 * self.hidden * self.tokens / LINK if k < self.experts else 0))

    def gains(self):
        """All on the GPU over one split of both passes, and over a split for each pass."""
        every = range(self.experts + 1)
        whole = self.forward(self.experts) + self.backward(self.experts)
        one = min(self.forward(k) + self.backward(k) for k in every)
        two = min(self.forward(k) for k in every) + min(self.backward(k, True) for k in every)
        return whole / one, whole / min(one, two)


def table():
    lines = ["| shape | G | batch | forward, backward, updates ms | one split | one split, no updates "
             "| own split of backward | the same, no updates |", "|" + "---|" * 8]
    for shape, skew, batch in POINTS:
        layer, free = (Layer(shape, skew, batch, updates) for updates in (True, False))
        times = ", ".join(f"{1e3 * s:.0f}" for s in (
            layer.forward(layer.experts), layer.backward(layer.experts), layer.update_s))
        (one, two), (one_free, two_free) = layer.gains(), free.gains()
        lines.append(f"| {shape} | {skew} | {batch} | {times} | {one:.2f} | {one_free:.2f} | "
                     f"{two:.2f} | {two_free:.2f} |")
    return "\n".join(lines)
