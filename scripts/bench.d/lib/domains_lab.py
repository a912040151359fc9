"""Expert domains on hosts of scripts/cluster_lab; see ../domains --on."""
import json
import shutil

import domain_runs
import ranks
import ranks_predicted
import run_hearth
import shapes

PER_HOST = {"lab": 1, "two-level": 2}  # ranks
# Table V of HybridEP. Seconds of an iteration by megabytes of rows, Tutel and HybridEP.
PAPER = {"Cluster-M": {"centres": 2, "per_host": 2, "rest_s": 2.0592,
                       "ep_s": {6: 2.52, 12: 4.26, 24: 5.82, 48: 7.62, 96: 12.65, 192: 20.35},
                       "domains_s": {6: 2.48, 12: 2.63, 24: 2.74, 48: 2.82, 96: 3.01, 192: 3.78}},
         "Cluster-L": {"centres": 4, "per_host": 1, "rest_s": 3.0488,
                       "ep_s": {6: 3.74, 12: 7.30, 24: 10.69, 48: 13.54, 96: 18.59, 192: 28.46},
                       "domains_s": {6: 3.49, 12: 3.53, 24: 3.54, 48: 3.85, 96: 4.24, 192: 5.20}}}
# Rows of 8 micro-batches are 10 times the bytes of a rank's experts, as the paper's 192 MB are.
TABLE_5 = {**domain_runs.CONFIG, "moe_intermediate_size": 128}
MEGABYTES_OF_MICRO_BATCH = 24
PAYLOAD, LATENCY_S, MEMORY = 0.92, 1e-4, 1e9  # of links of the lab, in both directions at once


def kilobits(bytes_per_s):
    return f"{round(bytes_per_s * 8 / 1e3)}kbit"


def known_links(options, per_host, rate):
    """Links as the lab has them. Every pair alone has the whole rate; all together share it. Headers and
    acknowledgements take a part of it. Within a host: memory."""
    payload = PAYLOAD * ranks.bytes_per_s(rate)
    across = options.ranks - per_host
    links = []
    for sender in range(options.ranks):
        for receiver in range(options.ranks):
            if sender == receiver:
                continue
            inside = sender // per_host == receiver // per_host
            links.append({"link": f"{sender}/host->{receiver}/host", "latency_s": LATENCY_S,
                          "bytes_per_s": MEMORY if inside else payload,
                          "together": MEMORY if inside else payload / (per_host * across)})
    return links


def measured_links(options, work, per_host, rate):
    out = work / f"links-{rate}"
    ranks.in_lab(options, rate, [options.hearth, "profile", "--cluster", "--model", work / "model",
                                 "--threads", 1, "--budget", "6s", "--out", out], per_host)
    return ranks_predicted.table_of(out)["links"]


def with_links(options, work, table, per_host, rate):
    """The table with the links of the lab. Its path."""
    links = (measured_links(options, work, per_host, rate) if options.links == "measured"
             else known_links(options, per_host, rate))
    path = work / f"table-{rate}.json"
    path.write_text(json.dumps({**json.loads(table.read_text()), "links": links}))
    return path


def step(options, work, per_host, rate, words):
    """A run in the lab: its plan, the fastest step, bytes that a rank sends in a step, losses."""
    out = work / "run"
    shutil.rmtree(out, ignore_errors=True)
    ranks.in_lab(options, rate, [options.hearth, "train", *words, "--out", out], per_host)
    plan = json.loads((out / "plan.json").read_text())
    _, fastest, sent = ranks_predicted.executed(out)
    return plan, fastest, sent, domain_runs.losses_of(out)


def sizes_text(plan, name, options):
    sizes = plan.get("domains", [1 if name == "ep" else options.ranks])
    return ",".join(str(size) for size in sizes)


def rows(options, work, per_host, rate, words, modes):
    """Runs each mode, ep first; yields what a line prints of it, and the speedups over ep."""
    first = None
    for name, mode in domain_runs.asked_for(options, modes).items():
        plan, fastest, sent, losses = step(options, work, per_host, rate, [*words, *mode])
        first = first or (plan["time_s"], fastest, losses)
        if losses != first[2] and "wired" not in name:
            raise SystemExit(f"bench: {name} has other losses than ep: {losses}, {first[2]}")
        text = (f"{name:>7} {sizes_text(plan, name, options):>7} {sent / 1e6:8.1f} "
                f"{1e3 * plan['time_s']:13.1f} {1e3 * fastest:11.1f} "
                f"{plan['time_s'] / fastest:20.3f}")
        yield name, text, first[0] / plan["time_s"], first[1] / fastest


HEAD = (f"{'mode':>7} {'domains':>7} {'sent MB':>8} {'predicted ms':>13} {'fastest ms':>11} "
        f"{'predicted / fastest':>20}")


def modes_of(place, method):
    hybrid = ["--parallel", "hybrid-ep"]
    modes = {"ep": ["--parallel", "ep"], "dp": ["--parallel", "dp"], "auto": hybrid}
    if method == "full":
        modes["fixed"] = [*hybrid, "--domains", 2 if place == "lab" else "2,1"]
        modes["wired"] = [*hybrid, *domain_runs.WIRED]
    return modes


def on_lab(options, work, place):
    per_host = PER_HOST[place]
    options.micro_batches = options.micro_batches or 2
    table = domain_runs.prepare(options, work, domain_runs.CONFIG, options.pace)
    print(f"{place}: {options.ranks} ranks, {per_host} a host, {options.micro_batches} micro-batches "
          f"of {domain_runs.SEQ} tokens each a step; rates and computation 1/{options.scale:g}")
    print(f"{'method':>6} {'Gb/s':>5} {HEAD} {'ep / this, predicted':>21} {'executed':>9}")
    for gbit in options.gbit:
        rate = kilobits(gbit * 1e9 / 8 / options.scale)
        path = with_links(options, work, table, per_host, rate)
        for method in ("full", "lora"):
            words = domain_runs.words_of(options, work, method, path)
            for _, text, predicted, executed in rows(options, work, per_host, rate, words,
                                                     modes_of(place, method)):
                print(f"{method:>6} {gbit:>5g} {text} {predicted:21.2f} {executed:9.2f}",
                      flush=True)


def link_rate(of, most, alone_s):
    """Bytes per second of a host's link with which `most` megabytes of rows take as many times the
    rest of a step as in Table V: 24 exchanges of 8 GPUs over 10 Gb/s. `alone_s`: what a rank computes
    in a step. The rest has the gradients and weights of all but experts, too."""
    crossing = 1 - 1 / of["centres"]
    times = 24 * 8 * crossing * most * 1e6 / 1.25e9 / of["rest_s"]
    model, per_host = TABLE_5, of["per_host"]
    vectors = 4 * model["num_hidden_layers"]  # there and back, forward and backward
    micro_batches = most / MEGABYTES_OF_MICRO_BATCH
    exchanged = (per_host * crossing * vectors * micro_batches * domain_runs.SEQ
                 * model["num_experts_per_tok"] * model["hidden_size"] * 4)
    experts = (3 * model["num_hidden_layers"] * model["num_experts"] * model["hidden_size"]
               * model["moe_intermediate_size"])
    others = 2 * 4 * per_host * crossing * (shapes.parameters(model) - experts)
    return (exchanged / times - others) / alone_s


def table_5(options, work):
    """Table V's shares of rows, experts and computation. Equal computation, whatever the rows."""
    if options.ranks != 4:
        raise SystemExit("bench: table-5 is of 4 ranks")
    print("Table V scaled to 4 ranks: Cluster-M on 2 hosts, Cluster-L on 4")
    print(f"{'cluster':>9} {'rows MB':>7} {HEAD} {'ep / this, computed':>20} {'executed':>9} "
          f"{'0.8 reached':>11} {'paper':>6}")
    for name, of in PAPER.items():
        rate = None
        for megabytes in sorted(options.rows_mb, reverse=True):
            options.micro_batches = round(megabytes / MEGABYTES_OF_MICRO_BATCH)
            own = work / f"{name}-{megabytes:g}"
            table = domain_runs.prepare(options, own, TABLE_5, 4 / options.micro_batches)
            if rate is None:
                alone = domain_runs.words_of(options, own, "full", table, ranks=1)
                plan = json.loads(run_hearth.call(options.hearth, "plan", *alone, "--json"))
                rate = kilobits(link_rate(of, megabytes, plan["time_s"]))
            path = with_links(options, own, table, of["per_host"], rate)
            words = domain_runs.words_of(options, own, "full", path)
            modes = {mode: each for mode, each in modes_of("", "full").items()
                     if mode in ("ep", "auto", "wired")}
            for mode, text, computed, executed in rows(options, own, of["per_host"], rate, words,
                                                       modes):
                paper = of["ep_s"][megabytes] / of["domains_s"][megabytes] if mode != "ep" else 1
                reached = "" if mode == "ep" else "yes" if executed >= 0.8 * computed else "no"
                print(f"{name:>9} {megabytes:7g} {text} {computed:20.2f} {executed:9.2f} "
                      f"{reached:>11} {paper:6.2f}", flush=True)
