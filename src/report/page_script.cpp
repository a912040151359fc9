#include "report/page_script.h"

namespace hearth {

const char* page_script() {
  return R"js(
"use strict";
(() => {
  const values = JSON.parse(document.getElementById("values").textContent);
  const number = v => v === null || v === undefined ? "\u2013"
    : Math.abs(v) >= 1000 ? Math.round(v).toLocaleString("en")
    : String(Number(v.toPrecision(5)));
  const steps = (a, b) => a === b ? "step " + a.toLocaleString("en")
    : "steps " + a.toLocaleString("en") + " to " + b.toLocaleString("en");
  const nearest = (list, x) => {
    let low = 0, high = list.length - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (list[middle] < x) low = middle + 1; else high = middle;
    }
    return low > 0 && x - list[low - 1] < list[low] - x ? low - 1 : low;
  };
  const linesAt = (lines, step) => {
    const rows = [];
    for (const line of lines) {
      const centre = line.step.map(s => s + (line.width - 1) / 2);
      const i = nearest(centre, step);
      if (Math.abs(centre[i] - step) > Math.max(line.width, 1) && line.step.length > 60) continue;
      if (!rows.length) rows.push(steps(line.step[i],
        Math.max(line.step[i], Math.ceil(line.step[i] + line.width) - 1)));
      const spread = line.min && line.min[i] !== line.max[i]
        ? " (" + number(line.min[i]) + " to " + number(line.max[i]) + ")" : "";
      const own = !line.min && line.step[i] !== lines[0].step[nearest(lines[0].step, step)]
        ? " at step " + line.step[i] : "";
      rows.push(line.name + ": " + number(line.mean[i]) + spread + own);
    }
    return rows;
  };
  const heatAt = (heat, x, y) => {
    const column = Math.min(heat.step.length - 2, Math.floor(x * (heat.step.length - 1)));
    const row = Math.min(heat.rows.length - 1, Math.floor(y * heat.rows.length));
    return [steps(heat.step[column], heat.step[column + 1] - 1),
      "layer " + row + ": " + number(heat.rows[row][column])];
  };
  for (const plot of document.querySelectorAll(".plot")) {
    const lines = values.charts[plot.dataset.chart], heat = values.heat[plot.dataset.heat];
    if (!lines && !heat) continue;
    const cursor = document.createElement("div"), box = document.createElement("div");
    cursor.className = "cursor";
    box.className = "readout";
    cursor.hidden = box.hidden = true;
    plot.append(cursor, box);
    let place = 0.5, height = 0.5;
    const show = () => {
      const x0 = Number(plot.dataset.x0), x1 = Number(plot.dataset.x1);
      const rows = lines ? linesAt(lines, x0 + place * (x1 - x0)) : heatAt(heat, place, height);
      if (!rows.length) return hide();
      box.replaceChildren(...rows.map((text, i) => {
        const part = document.createElement(i ? "div" : "b");
        part.textContent = text;
        return part;
      }));
      cursor.hidden = box.hidden = false;
      cursor.style.left = 100 * place + "%";
      box.style.left = place < 0.5 ? "calc(" + 100 * place + "% + 10px)" : "auto";
      box.style.right = place < 0.5 ? "auto" : "calc(" + 100 * (1 - place) + "% + 10px)";
    };
    const hide = () => { cursor.hidden = box.hidden = true; };
    const follow = event => {
      const frame = plot.getBoundingClientRect();
      place = Math.min(1, Math.max(0, (event.clientX - frame.left) / frame.width));
      height = Math.min(0.999, Math.max(0, (event.clientY - frame.top) / frame.height));
      show();
    };
    plot.addEventListener("pointermove", follow);
    plot.addEventListener("pointerdown", follow);
    plot.addEventListener("pointerleave", hide);
    plot.addEventListener("blur", hide);
    plot.addEventListener("keydown", event => {
      const by = {ArrowLeft: -1, ArrowRight: 1}[event.key], up = {ArrowUp: -1, ArrowDown: 1}[event.key];
      if (by) place = Math.min(1, Math.max(0, place + by / 100));
      else if (up && heat) {
        height = Math.min(0.999, Math.max(0, height + up / heat.rows.length));
      } else return;
      event.preventDefault();
      show();
    });
  }
})();
)js";
}

}  // namespace hearth
