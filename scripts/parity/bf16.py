"""bf16 compute is judged by its error against f64, pooled over cases, beside torch's own error."""
import math

LIMIT = 1.2  # times torch's error


def errors(steps, row_losses, final, truth, start):
    """Squared errors, a kind, against `truth` (a result in f64: steps, row_losses, final).

    update: of all weights together; loss and grad_norm: mean over the steps; eval: mean over the
    loss of single rows before training.
    """
    wrong = size = 0.0
    for name, value in truth["final"].items():
        wrong += (final[name].double() - value.double()).norm().item() ** 2
        size += (value.double() - start[name].double()).norm().item() ** 2
    relative = lambda key: [(a[key] / b[key] - 1) ** 2 for a, b in zip(steps, truth["steps"])]
    rows = [(a / b - 1) ** 2 for a, b in zip(row_losses, truth["row_losses"])]
    return dict(update=wrong / size, loss=mean(relative("loss")),
                grad_norm=mean(relative("grad_norm")), eval=mean(rows))


def mean(values):
    return sum(values) / len(values)


def pooled(list_of_errors):
    """Root of the mean over cases."""
    return {kind: math.sqrt(mean([e[kind] for e in list_of_errors]))
            for kind in list_of_errors[0]}
