"use strict";
// Shows the values of one moment in all charts, and the rows of the files when somebody unfolds them.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const ROWS_SHOWN = 100;

  // Rows in the order of time, with the moment of each in seconds since the start.
  const source = (file, keep) => {
    if (!file) return null;
    const place = new Map(file.columns.map((name, at) => [name, at]));
    const time = place.get("time_ms");
    const rows = file.rows.filter((row) => keep(row, place));
    return { place, rows, moments: rows.map((row) => (row[time] - data.start_ms) / 1000) };
  };
  const sources = {
    run: source(data.run, (row, place) => row[place.get("kind")] === "second"),
    steps: source(data.run, (row, place) => row[place.get("kind")] === "step"),
    sample: source(data.sample, () => true),
  };

  const nearest = (values, wanted) => {
    let best = -1;
    values.forEach((value, at) => {
      if (best < 0 || Math.abs(value - wanted) < Math.abs(values[best] - wanted)) best = at;
    });
    return best;
  };
  const clock = (seconds) => {
    const whole = Math.max(0, Math.round(seconds));
    const two = (number) => String(number).padStart(2, "0");
    const [hours, minutes, rest] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
    return hours ? `${hours}:${two(minutes)}:${two(rest)}` : `${minutes}:${two(rest)}`;
  };

  const charts = [...document.querySelectorAll("svg[data-across]")];
  const said = document.getElementById("moment");
  const cross = (svg, at) => {
    const line = svg.querySelector(".cross");
    const [left, right, end] = ["left", "right", "end"].map((name) => Number(svg.dataset[name]));
    const x = left + ((right - left) * at) / end;
    line.setAttribute("x1", x);
    line.setAttribute("x2", x);
    line.setAttribute("visibility", "visible");
  };
  const fill = (svg, rowOf) => {
    for (const output of svg.parentElement.querySelectorAll("output")) {
      const from = sources[output.dataset.source];
      const row = from && rowOf(from);
      const value = row ? row[from.place.get(output.dataset.column)] : null;
      output.value = value === null ? "–" : value.toLocaleString("en", { maximumFractionDigits: 3 });
    }
  };
  const show = (svg, at) => {
    if (svg.dataset.across === "load") {
      const targets = sources.steps.rows.map((row) => row[sources.steps.place.get("target")]);
      const step = nearest(targets, at);
      if (step < 0) return;
      cross(svg, targets[step]);
      fill(svg, (from) => from.rows[step]);
      return;
    }
    const run = sources.run.moments[nearest(sources.run.moments, at)];
    said.textContent = `At ${clock(run)} after the start:`;
    for (const chart of charts.filter((chart) => chart.dataset.across === "time")) {
      cross(chart, run);
      // A row that is far from the moment says nothing about it.
      fill(chart, (from) => {
        const row = nearest(from.moments, run);
        return Math.abs(from.moments[row] - run) <= 30 ? from.rows[row] : null;
      });
    }
  };

  for (const svg of charts) {
    let last = 0;
    const [left, right, end] = ["left", "right", "end"].map((name) => Number(svg.dataset[name]));
    const point = (event) => {
      const box = svg.getBoundingClientRect();
      const x = ((event.clientX - box.left) * svg.viewBox.baseVal.width) / box.width;
      last = Math.min(end, Math.max(0, ((x - left) * end) / (right - left)));
      show(svg, last);
    };
    svg.addEventListener("pointermove", point);
    svg.addEventListener("pointerdown", point);
    svg.addEventListener("keydown", (event) => {
      const way = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!way) return;
      event.preventDefault();
      last = Math.min(end, Math.max(0, last + (way * end) / 100));
      show(svg, last);
    });
  }

  for (const folded of document.querySelectorAll("details[data-file]")) {
    const file = data[folded.dataset.file];
    const [head, body] = [folded.querySelector("thead"), folded.querySelector("tbody")];
    const where = folded.querySelector(".where");
    let first = 0;
    const line = (cells, kind) => {
      const row = document.createElement("tr");
      for (const cell of cells) row.appendChild(document.createElement(kind)).textContent = cell ?? "";
      return row;
    };
    const fold = () => {
      head.replaceChildren(line(file.columns, "th"));
      const rows = file.rows.slice(first, first + ROWS_SHOWN);
      body.replaceChildren(...rows.map((row) => line(row, "td")));
      where.textContent = `rows ${first + 1} to ${first + rows.length} of ${file.rows.length}`;
    };
    const turn = (pages) => {
      const last = Math.max(0, Math.ceil(file.rows.length / ROWS_SHOWN) - 1) * ROWS_SHOWN;
      first = Math.min(last, Math.max(0, first + pages * ROWS_SHOWN));
      fold();
    };
    folded.addEventListener("toggle", () => folded.open && fold());
    folded.querySelector(".earlier").addEventListener("click", () => turn(-1));
    folded.querySelector(".later").addEventListener("click", () => turn(1));
  }
})();
