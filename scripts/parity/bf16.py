"""bf16 compute is judged by its error against f64, pooled over cases, beside torch's own error."""
import math

LIMIT = 1.2  # times torch's error


def errors(steps, final, truth, start):
    """Squared errors, a kind, against `truth` (a result in f64: steps, final).

    update: of all weights together; loss and grad_norm: mean over the steps.
    """
    updates = {name: value - start[name].double() for name, value in truth["final"].items()}
    wrong = {name: final[name].double() - value.double() for name, value in truth["final"].items()}
    relative = lambda key: [(a[key] / b[key] - 1) ** 2 for a, b in zip(steps, truth["steps"])]
    return dict(update=ratio(wrong, updates), loss=mean(relative("loss")),
                grad_norm=mean(relative("grad_norm")))


def logits_error(logits, truth):
    return ratio({i: logits[i].double() - truth[i].double() for i in truth}, truth)


def ratio(wrong, right):
    squares = lambda tensors: sum(t.double().norm().item() ** 2 for t in tensors.values())
    return squares(wrong) / squares(right)


def mean(values):
    return sum(values) / len(values)


def pooled(list_of_errors):
    """Root of the mean over cases."""
    return {kind: math.sqrt(mean([e[kind] for e in list_of_errors]))
            for kind in list_of_errors[0]}
