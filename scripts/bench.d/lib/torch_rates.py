"""What torch reaches on this machine: products and its fused AdamW, on all cores."""
import time

import torch

K, N = 1024, 512


def best_seconds(call, window=0.15):
    call()
    best, end = 1e30, time.perf_counter() + window
    while time.perf_counter() < end:
        begin = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - begin)
    return best


def products(dtype, threads):
    """The best over rows, layouts of the weight, and one product a core."""
    best = 0
    for m in (256, 512, 1024):
        x = torch.randn(m, K).to(dtype)
        for w in (torch.randn(K, N).to(dtype), torch.randn(N, K).to(dtype).T):
            best = max(best, 2 * m * K * N / best_seconds(lambda: torch.mm(x, w)))
        x, w = torch.randn(threads, m, K).to(dtype), torch.randn(threads, K, N).to(dtype)
        best = max(best, 2 * threads * m * K * N / best_seconds(lambda: torch.bmm(x, w)))
    return best / 1e9


def sweep(size=32 << 20):
    weight = torch.nn.Parameter(torch.randn(size))
    weight.grad = torch.randn(size) * 1e-3
    optimizer = torch.optim.AdamW([weight], lr=1e-5, fused=True)
    return 28 * size / best_seconds(optimizer.step, 0.6) / 1e9


def measure(threads):
    """GFLOP/s of the best product in f32 and in bf16, GB/s of the sweep."""
    torch.set_num_threads(threads)
    return {"f32": products(torch.float32, threads), "bf16": products(torch.bfloat16, threads),
            "adamw": sweep()}
