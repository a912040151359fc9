"""Pictures of what `hearth simulate zebra` computes: Table 3 and the gain of HeterMoE, simulated."""
import json

import run_hearth

LEFT, TOP, HEIGHT = 44, 62, 220
COLOURS = ("#b0b7bf", "#6b7785", "#d9822b", "#2b6cb0")
# HeterMoE, section 6.4.3: Mixtral-D1 at 4 K, and no gain beyond 20 K.
PAPER_GAIN = {4: 1.14, 20: 1.0}


def frame(width, title, names):
    """The beginning of a picture, with a legend: colours in the order of names, empty ones left out."""
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{TOP + HEIGHT + 52}" '
           'font-family="sans-serif" font-size="11">',
           '<rect width="100%" height="100%" fill="white"/>',
           f'<text x="{LEFT}" y="16" font-size="13">{title}</text>']
    for i, name in enumerate(names):
        if not name:
            continue
        x, y = LEFT + 190 * (i % 2), 24 + 16 * (i // 2)
        out.append(f'<rect x="{x}" y="{y}" width="10" height="10" fill="{COLOURS[i]}"/>')
        out.append(f'<text x="{x + 14}" y="{y + 9}">{name}</text>')
    return out


def grid(width, values, height_of, text):
    out = []
    for value in values:
        y = TOP + HEIGHT - height_of(value)
        out.append(f'<line x1="{LEFT}" y1="{y:.1f}" x2="{width - 8}" y2="{y:.1f}" stroke="#ddd"/>')
        out.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{text(value)}</text>')
    return out


def table_3(rows):
    """Bars: utilisation of both roles, simulated beside the paper's."""
    kinds = [("zebra", "zebra, simulated"), ("paper_zebra", "zebra, paper"),
             ("algorithm_1", "with Algorithm 1, simulated"),
             ("paper_shifted", "with Algorithm 1, paper")]
    bar, gap = 18, 24
    group = bar * len(kinds) + gap
    width = LEFT + group * 2 * len(rows) + 10
    width = max(width, LEFT + 400)
    out = frame(width, "Table 3: utilisation in percent, Mixtral-D1 on 6 A40 and 6 V100",
                [name for _, name in kinds])
    out += grid(width, range(0, 101, 20), lambda value: HEIGHT * value / 100, str)
    for n, row in enumerate(rows):
        for r, (role, name) in enumerate((("attention", "A40"), ("experts", "V100"))):
            x = LEFT + group * (2 * n + r) + gap / 2
            for i, (kind, _) in enumerate(kinds):
                tall = HEIGHT * row[kind][role]
                out.append(f'<rect x="{x + bar * i:.1f}" y="{TOP + HEIGHT - tall:.1f}" '
                           f'width="{bar - 1}" height="{tall:.1f}" fill="{COLOURS[i]}"/>')
            middle = x + bar * len(kinds) / 2
            for line, text in enumerate((name, f"{row['tokens'] // 1024} K tokens")):
                out.append(f'<text x="{middle:.1f}" y="{TOP + HEIGHT + 16 + 15 * line}" '
                           f'text-anchor="middle">{text}</text>')
    return "\n".join(out + ["</svg>", ""])


def gain(rows):
    """Curves: how much faster a step is if experts move."""
    width, most = LEFT + 400, 0.5
    out = frame(width, "Speed with experts that move, over none; Mixtral-D1, 6 A40 and 6 V100",
                ["the paper, measured", "", "Algorithm 1, simulated", "the search, simulated"])
    out += grid(width, (1, 1.1, 1.2, 1.3, 1.4, 1.5), lambda value: HEIGHT * (value - 1) / most,
                lambda value: f"{value:g}")

    def point(thousands, value):
        return (LEFT + 20 + 15 * (thousands - 4) * 1.15,
                TOP + HEIGHT - HEIGHT * (value - 1) / most)

    for kind, colour in (("algorithm_1", COLOURS[2]), ("shifted", COLOURS[3])):
        points = [point(row["tokens"] // 1024, row[kind]) for row in rows]
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        out.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
        out += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in points]
    for thousands, value in PAPER_GAIN.items():
        x, y = point(thousands, value)
        out.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" fill="{COLOURS[0]}" stroke="#333"/>')
    for row in rows:
        x, _ = point(row["tokens"] // 1024, 1)
        out.append(f'<text x="{x:.1f}" y="{TOP + HEIGHT + 16}" text-anchor="middle">'
                   f'{row["tokens"] // 1024} K</text>')
    return "\n".join(out + ["</svg>", ""])


def write(hearth, directory):
    told = json.loads(run_hearth.call(hearth, "simulate", "zebra", "--json"))
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "zebra-table-3.svg").write_text(table_3(told["utilisation"]))
    (directory / "zebra-gain.svg").write_text(gain(told["gain"]))
