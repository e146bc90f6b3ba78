"use strict";
/* The site works without this file but for charts and single runs; it makes boards sortable, searchable and
   filterable. All text goes into the page as text, never as HTML. */
(function () {
  const root = document.body.dataset.root;

  function element(tag, attributes, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {})) made.setAttribute(name, value);
    made.append(...children.filter((child) => child !== null));
    return made;
  }

  /* Boards ------------------------------------------------------------------------------------- */

  function board(table) {
    const form = document.getElementById("filters");
    const search = document.getElementById("search");
    const heads = [...table.tHead.rows[0].cells];
    const bodies = [...table.tBodies];
    const every = bodies.flatMap((body) => [...body.querySelectorAll("tr.row")]
      .map((row, place) => ({ row, details: row.nextElementSibling, body, place })));
    const first = form.elements.settings ? form.elements.settings.value : "";
    let order = null;

    for (const { row, details } of every) {
      const button = row.querySelector(".more");
      button.hidden = false;
      details.hidden = true;
      button.addEventListener("click", () => open(button, details, details.hidden));
    }
    function open(button, details, shown) {
      details.hidden = !shown;
      button.setAttribute("aria-expanded", String(shown));
    }

    heads.forEach((head, place) => {
      if (!head.classList.contains("number") && !head.dataset.sort) return;
      const button = element("button", { type: "button" }, ...head.childNodes);
      head.replaceChildren(button);
      button.addEventListener("click", () => {
        const descending = order && order.place === place ? !order.descending : head.dataset.sort !== "ascending";
        order = { place, descending };
        draw();
      });
    });

    /* What a row is sorted by: a number, a text, or nothing, which comes last in either direction. */
    function key(row, place) {
      const cell = row.cells[place];
      const text = cell.dataset.order ?? cell.textContent.trim();
      return text === "" || !cell.classList.contains("number") ? text : Number(text);
    }
    function compare(a, b) {
      if (!order) return bodies.indexOf(a.body) - bodies.indexOf(b.body) || a.place - b.place;
      const [one, two] = [key(a.row, order.place), key(b.row, order.place)];
      if (one === "" || two === "") return (one === "") - (two === "");
      return (order.descending ? -1 : 1) * (one < two ? -1 : one > two ? 1 : 0);
    }

    /* Where settings are mixed, the rows of a task stand in the first part of it that there is. */
    function home(one, mixed) {
      const task = (body) => [body.dataset.table, body.dataset.scenario, body.dataset.clients, body.rows[0].dataset.point].join("|");
      return mixed ? bodies.find((body) => task(body) === task(one.body)) : one.body;
    }

    function draw() {
      const values = Object.fromEntries([...new FormData(form)].map(([name, value]) => [name, String(value)]));
      const words = search.value.trim().toLowerCase();
      const mixed = values.settings === "mixed";
      if (mixed && !order) order = { place: 2, descending: true };
      let shown = 0;
      for (const one of [...every].sort(compare)) {
        const { row, details, body } = one;
        home(one, mixed).append(row, details);
        const passes = ["table", "scenario", "clients"].every((name) => !values[name] || body.dataset[name] === values[name]) &&
          (!values.verdict || row.dataset.verdict === values.verdict) &&
          (!values.settings || mixed || body.dataset.settings === values.settings) &&
          (!words || row.textContent.toLowerCase().includes(words));
        row.hidden = !passes;
        shown += passes;
        if (!passes) open(row.querySelector(".more"), details, false);
      }
      for (const body of bodies) {
        body.hidden = !body.querySelector("tr.row:not([hidden])");
        body.querySelector(".kind").hidden = mixed;
      }
      heads.forEach((head, place) => {
        if (order && order.place === place) head.setAttribute("aria-sort", order.descending ? "descending" : "ascending");
        else head.removeAttribute("aria-sort");
      });
      document.getElementById("count").textContent = shown === 0 ? "No row passes the filters." : shown + " of " + every.length + " rows";
      save(values);
    }

    function save(values) {
      const state = new URLSearchParams();
      for (const [name, value] of Object.entries(values)) if (value !== (name === "settings" ? first : "")) state.set(name, value);
      if (order) state.set("sort", order.place + (order.descending ? ".desc" : ".asc"));
      const text = state.toString();
      if (text) history.replaceState(null, "", "#" + text);
      else if (location.hash.includes("=")) history.replaceState(null, "", location.pathname + location.search);
    }
    function read() {
      const hash = decodeURIComponent(location.hash.slice(1));
      const target = every.find(({ row }) => row.id === hash);
      if (!location.hash.includes("=") && !target && hash) return;
      form.reset();
      if (target) {
        if (form.elements.settings) form.elements.settings.value = target.body.dataset.settings;
        draw();
        open(target.row.querySelector(".more"), target.details, true);
        history.replaceState(null, "", "#" + hash);
        target.row.scrollIntoView({ block: "center" });
        return;
      }
      const state = new URLSearchParams(location.hash.slice(1));
      for (const [name, value] of state) {
        const field = form.elements.namedItem(name);
        if (field === search) search.value = value;
        else if (field && [...(field.length ? field : [field])].some((option) => option.value === value)) field.value = value;
      }
      const [place, direction] = (state.get("sort") || "").split(".");
      if (/^\d+$/.test(place) && heads[place] && heads[place].querySelector("button") && ["asc", "desc"].includes(direction)) {
        order = { place: Number(place), descending: direction === "desc" };
      }
      draw();
    }
    form.hidden = false;
    form.querySelector("details").open = window.matchMedia("(min-width: 40rem)").matches;
    form.addEventListener("input", draw);
    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("reset", () => { order = null; setTimeout(draw); });
    window.addEventListener("hashchange", read);
    if (location.hash) read();
    else draw();
  }

  /* Charts ------------------------------------------------------------------------------------- */

  const dark = window.matchMedia("(prefers-color-scheme: dark)");

  function theme() {
    const style = getComputedStyle(document.documentElement);
    const [ink, soft, line] = ["--ink", "--soft", "--line"].map((name) => style.getPropertyValue(name).trim());
    const text = { labelColor: ink, titleColor: ink, labelFontSize: 12, titleFontSize: 12, titleFontWeight: "normal" };
    return {
      ink,
      soft,
      config: {
        background: null,
        font: "system-ui, sans-serif",
        view: { stroke: null },
        axis: { ...text, gridColor: line, domainColor: soft, tickColor: soft },
        legend: { ...text, symbolSize: 70, symbolOpacity: 1, symbolLimit: 200, labelLimit: 220 },
      },
    };
  }

  /* Draws a chart as wide as its place; small multiples have widths of their own. */
  function drawn(place, { small, ...spec }, description) {
    const { config } = theme();
    const width = Math.min(900, place.clientWidth - 4);
    config.legend = { ...config.legend, orient: width < 560 ? "bottom" : "right", columns: width < 560 ? 2 : 1, title: null };
    const sized = small ? {} : { width, autosize: { type: "fit-x", contains: "padding" } };
    return vegaEmbed(place, { ...spec, ...sized, description, config }, {
      mode: "vega-lite", renderer: "svg", actions: false, ast: true, defaultStyle: false,
      tooltip: { disableDefaultStyle: true },
    });
  }

  /* A colour on the page's ground: where that is dark, near-black is drawn in the ink of the page, and a dark hue
     lighter, up to a contrast of 3 : 1 or more. */
  function ink(colour) {
    if (!dark.matches) return colour;
    const parts = [1, 3, 5].map((start) => parseInt(colour.slice(start, start + 2), 16) / 255);
    if (Math.max(...parts) < 0.2) return theme().ink;
    const luminance = (rgb) => rgb.map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4))
      .reduce((sum, part, i) => sum + part * [0.2126, 0.7152, 0.0722][i], 0);
    const [most, least] = [Math.max(...parts), Math.min(...parts)];
    const lightness = (most + least) / 2;
    const saturation = most === least ? 0 : (most - least) / (1 - Math.abs(2 * lightness - 1));
    /* The hue stays: every part keeps its place between the least and the most. */
    const at = (light) => parts.map((part) => light + saturation * (1 - Math.abs(2 * light - 1)) * (most === least ? 0 : (part - least) / (most - least) - 0.5));
    let light = lightness;
    while (luminance(at(light)) < 0.17) light += 0.02;
    return "#" + at(light).map((part) => Math.round(255 * part).toString(16).padStart(2, "0")).join("");
  }

  /* Colour, dashes and symbol by label. */
  function scales(labels, looks) {
    const of = (key) => ({ domain: labels, range: labels.map((label) => (key === "colour" ? ink(looks[label][key]) : looks[label][key])) });
    return {
      color: { field: "label", type: "nominal", scale: of("colour") },
      shape: { field: "label", type: "nominal", scale: of("symbol") },
      strokeDash: { field: "label", type: "nominal", scale: of("dashes") },
    };
  }

  const MEASURE = "Test " + document.body.dataset.quantity + " (%)";
  const AXES = { seconds: "Seconds of a run", megabytes: "Megabytes of a run" };

  /* The methods that no other beats: more accuracy for no more cost. */
  function front(methods, cost) {
    const sorted = [...methods].sort((a, b) => a[cost] - b[cost] || b.mean - a.mean);
    let best = -Infinity;
    return sorted.filter((one) => one.mean > best && (best = one.mean) === one.mean);
  }

  /* Places labels beside their points, in pixels: each where it lies on the fewest of all points and labels before it. */
  function beside(labelled, points, width) {
    const boxes = points.map(({ px, py }) => [px - 6, py - 6, px + 6, py + 6]);
    const overlap = ([l, t, r, b]) => boxes.reduce((sum, [left, top, right, bottom]) =>
      sum + Math.max(0, Math.min(r, right) - Math.max(l, left)) * Math.max(0, Math.min(b, bottom) - Math.max(t, top)), 0);
    return labelled.map((one) => {
      const long = 7 * one.label.length;
      const choices = [-5, 14, -19, 28, -33, 42].flatMap((dy) => [8, -8].map((dx) => {
        const left = one.px + (dx > 0 ? dx : dx - long);
        const box = [left, one.py + dy - 11, left + long, one.py + dy + 3];
        const outside = Math.max(0, -left) + Math.max(0, left + long - width) + (one.py + dy < 11 ? 99 : 0);
        return { dx, dy, box, cost: overlap(box) + 40 * outside + Math.abs(dy) / 10 };
      }));
      const best = choices.reduce((a, b) => (b.cost < a.cost ? b : a));
      boxes.push(best.box);
      return { label: one, dx: best.dx, dy: best.dy };
    });
  }

  const HEIGHT = 320;

  function costs(methods, cost, place) {
    const { ink } = theme();
    const rows = methods.filter((one) => !one.reference).map((one) => ({ ...one, cost: one[cost], low: one.low ?? one.mean, high: one.high ?? one.mean }));
    const best = front(rows, "cost");
    for (const row of rows) row.front = best.includes(row);
    const { color, shape } = scales(rows.map((row) => row.label), looks(rows));
    /* Logarithmic from the least cost on; below it linear, so that methods that cost nothing have a place. */
    const paid = rows.map((row) => row.cost).filter((value) => value > 0);
    const least = paid.length ? Math.min(...paid) : 1;
    const most = paid.length ? Math.max(...paid) : 1;
    const values = paid.length < rows.length ? [0] : [];
    for (let power = 10 ** Math.floor(Math.log10(least / 2)); power <= most; power *= 10) values.push(power, 2 * power, 5 * power);
    const domain = [values[0] === 0 ? 0 : least / 1.3, 1.4 * most];
    const x = { field: "cost", type: "quantitative", title: AXES[cost],
                scale: { type: "symlog", constant: least / 4, domain, nice: false },
                axis: { values: values.filter((value) => value === 0 || (value >= least / 2 && value <= domain[1])) } };
    const [bottom, top] = [Math.min(...rows.map((row) => row.low)), Math.max(...rows.map((row) => row.high))];
    const room = 0.05 * (top - bottom || 1);
    const range = [bottom - room, top + room];
    const y = { field: "mean", type: "quantitative", title: MEASURE, scale: { zero: false, domain: range, nice: false } };
    const width = Math.min(900, place.clientWidth) - 60;
    const depth = (value) => Math.log1p(Math.max(0, value) / (least / 4));
    const points = rows.map((row) => ({ ...row,
      px: (width * (depth(row.cost) - depth(domain[0]))) / (depth(domain[1]) - depth(domain[0])),
      py: (HEIGHT * (range[1] - row.mean)) / (range[1] - range[0]) }));
    const labels = beside(points.filter((row) => row.front).sort((a, b) => b.px - a.px), points, width);
    /* A label that is not next to its point is led to it by a line. */
    const leaders = labels.filter(({ dy }) => Math.abs(dy) > 14).map(({ label, dx, dy }) => ({
      cost: label.cost, mean: label.mean, to: label.mean - ((dy - 4) * (range[1] - range[0])) / HEIGHT,
      at: (least / 4) * Math.expm1(depth(domain[0]) + ((label.px + dx) * (depth(domain[1]) - depth(domain[0]))) / width) }));
    const tooltip = [{ field: "label", title: "Method" }, { field: "cost", title: AXES[cost], type: "quantitative", format: ",.2f" },
                     { field: "mean", title: MEASURE, type: "quantitative", format: ".2f" }, { field: "n", title: "Seeds" }];
    return {
      data: { values: rows }, height: HEIGHT,
      layer: [
        { data: { values: best }, mark: { type: "line", color: ink, opacity: 0.55, strokeWidth: 1.2, interpolate: "step-after" }, encoding: { x, y } },
        { mark: { type: "rule", opacity: 0.55 }, encoding: { x, color: { ...color, legend: null }, y: { ...y, field: "low" }, y2: { field: "high" } } },
        { mark: { type: "point", filled: true, size: 80, opacity: 1 }, encoding: { x, y, color: { ...color, legend: null }, shape: { ...shape, legend: null }, tooltip } },
        ...leaders.map((leader) => (
          { data: { values: [leader] }, mark: { type: "rule", color: ink, opacity: 0.6, strokeWidth: 0.8 }, encoding: { x, y, x2: { field: "at" }, y2: { field: "to" } } })),
        ...labels.map(({ label, dx, dy }) => (
          { data: { values: [label] }, mark: { type: "text", align: dx > 0 ? "left" : "right", baseline: "alphabetic", dx, dy, fontSize: 12, color: ink }, encoding: { x, y, text: { field: "label" } } })),
      ],
    };
  }

  function looks(methods) {
    return Object.fromEntries(methods.map((one) => [one.label, one]));
  }

  const kinds = {
    seconds: (methods, place) => costs(methods, "seconds", place),
    megabytes: (methods, place) => costs(methods, "megabytes", place),
    clients(methods) {
      const labels = methods.map((one) => one.label);
      const rows = methods.flatMap(({ label, clients }) => clients.map(([client, value]) => ({ label, client, value })));
      const { color, shape } = scales(labels, looks(methods));
      const { ink, soft } = theme();
      const y = { field: "label", type: "nominal", sort: labels, title: null };
      const x = { field: "value", type: "quantitative", title: MEASURE, scale: { zero: false } };
      return {
        data: { values: rows }, height: 24 * labels.length,
        layer: [
          { mark: { type: "boxplot", extent: "min-max", size: 14, color: soft, opacity: 0.35, box: { color: soft },
                    median: { color: ink, opacity: 1 }, tooltip: false }, encoding: { x, y } },
          { mark: { type: "point", filled: true, size: 22, opacity: 0.9 },
            encoding: { x, y, color: { ...color, legend: null }, shape: { ...shape, legend: null },
                        tooltip: [{ field: "label", title: "Method" }, { field: "client", title: "Client" },
                                  { field: "value", title: MEASURE, type: "quantitative", format: ".2f" }] } },
        ],
      };
    },
    /* Small multiples: a method in its colour before all others in grey; a method that does not train is a level. */
    rounds(methods, place) {
      const { soft } = theme();
      const last = Math.max(...methods.flatMap((one) => one.x.slice(-1)));
      const lines = methods.filter((one) => one.curve.length)
        .map((one) => (one.x.length === 1 ? { ...one, x: [0, last], curve: [one.curve[0], one.curve[0]] } : one));
      if (!lines.length) return null;
      const points = lines.flatMap(({ label, x, curve }) => x.map((round, i) => ({ line: label, x: round, mean: curve[i] })));
      const settled = lines.flatMap(({ curve }) => curve.slice(Math.floor(curve.length / 5)));
      settled.sort((a, b) => a - b);
      const low = Math.max(0, 5 * Math.floor((settled[Math.floor(settled.length * 0.04)] ?? 0) / 5 - 1));
      const columns = Math.max(2, Math.floor((place.clientWidth - 60) / 190));
      const encoding = {
        x: { field: "x", type: "quantitative", title: "Round", axis: { tickCount: 4 } },
        y: { field: "mean", type: "quantitative", title: null, scale: { zero: false, domain: [low, Math.max(...settled)], nice: true } },
      };
      return {
        small: true, columns: Math.min(columns, lines.length), spacing: 14,
        concat: lines.map((one) => ({
          title: { text: one.label, fontSize: 12, anchor: "start", color: theme().ink, fontWeight: "normal" },
          width: Math.floor((place.clientWidth - 30) / columns) - 50, height: 110, view: { stroke: null },
          layer: [
            { data: { name: "all", values: points }, mark: { type: "line", clip: true, strokeWidth: 0.7, color: soft, opacity: 0.35 }, encoding: { ...encoding, detail: { field: "line" } } },
            { data: { values: points.filter((point) => point.line === one.label) }, mark: { type: "line", clip: true, strokeWidth: 2.2, color: ink(one.colour), tooltip: true }, encoding },
          ],
        })),
      };
    },
    /* The curves of one run. */
    run(curves) {
      const rows = curves.flatMap(({ label, x, mean }) => x.map((round, i) => ({ label, x: round, mean: mean[i] })));
      const last = Math.max(...rows.map((row) => row.x));
      const step = [1, 2, 5, 10, 20, 50, 100, 200, 500].find((size) => last / size <= 10) || 1000; // rounds are whole
      const ticks = Array.from({ length: Math.floor(last / step) }, (_, i) => step * (i + 1));
      const { color, strokeDash } = scales(curves.map((one) => one.label), looks(curves));
      return { data: { values: rows }, height: HEIGHT, mark: { type: "line", strokeWidth: 1.8 },
               encoding: { x: { field: "x", type: "quantitative", title: "Round", axis: { values: ticks, format: ",d" } }, y: { field: "mean", type: "quantitative", title: "Accuracy (%)", scale: { zero: false } }, color, strokeDash } };
    },
  };

  window.benchCharts = function (tasks) {
    const select = document.getElementById("task");
    for (const name of Object.keys(tasks)) select.append(element("option", { value: name }, name));
    function draw() {
      const methods = tasks[select.value];
      for (const place of document.querySelectorAll(".chart")) {
        const spec = kinds[place.dataset.kind](methods, place);
        if (!spec) {
          place.replaceChildren(element("p", { class: "empty" }, "No numbers for this task."));
          continue;
        }
        drawn(place, spec, place.dataset.title + ", " + select.value + ", of " + methods.map((one) => one.label).join(", ") + "; the numbers are in the CSV files.");
      }
    }
    select.addEventListener("change", draw);
    dark.addEventListener("change", draw);
    draw();
  };

  /* A run -------------------------------------------------------------------------------------- */

  let loaded = Promise.resolve({ runs: {}, environments: {} });
  window.benchRuns = function (packed) {
    const bytes = Uint8Array.from(atob(packed), (sign) => sign.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    loaded = new Response(stream).json();
  };

  function table(label, heads, rows, first) {
    const cell = (value, place) =>
      element(place === 0 ? "th" : "td", place === 0 ? { scope: "row" } : place >= first ? { class: "number" } : {}, value === null ? "–" : String(value));
    return element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label },
      element("table", {},
        element("thead", {}, element("tr", {}, ...heads.map((head, place) => element("th", { scope: "col", ...(place >= first ? { class: "number" } : {}) }, head)))),
        element("tbody", {}, ...rows.map((row) => element("tr", {}, ...row.map(cell))))));
  }

  function facts(pairs) {
    return element("dl", { class: "facts" }, ...pairs.filter(([, value]) => value !== "" && value !== null)
      .flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, value)]));
  }

  /* The rows of boards that a run stands in, one below the other. */
  function links(boards) {
    return boards.length ? element("div", {}, ...boards.map(({ address, title }) => element("div", {}, element("a", { href: root + address }, title)))) : "";
  }

  function fixed(value, digits) {
    return value === null ? null : Number(value).toFixed(digits);
  }

  /* The x values of a curve: rounds, or shares of a round where every local epoch was evaluated. */
  function rounds(curve, run, stage) {
    const perRound = stage === "trained" && run.spec.protocol.evaluate === "epoch" ? run.spec.protocol.local_epochs : 1;
    return curve.values.map((value, i) => Math.min(i * curve.every + 1, curve.rows) / perRound)
      .map((x, i, all) => (i === all.length - 1 ? curve.rows / perRound : x));
  }

  function curves(run) {
    const found = Object.entries(run.curves).flatMap(([stage, splits]) =>
      Object.entries(splits).map(([split, curve]) => ({ label: stage + ", " + (split === "val" ? "validation" : split), x: rounds(curve, run, stage),
                                                        mean: curve.values.map((value) => value / 100) })));
    if (!found.length) return [element("p", {}, "No curves are kept of this run.")];
    const missing = Object.values(run.curves).some((splits) => !splits.val);
    const lines = found.map((curve) => ({
      ...curve, colour: curve.label.startsWith("trained") ? "#0072b2" : "#d55e00",
      dashes: curve.label.endsWith("validation") ? [6, 3] : [1, 0], symbol: "circle" }));
    const place = element("div", { class: "chart", tabindex: "0", role: "region", "aria-label": "Chart: accuracy by round" });
    const show = () => drawn(place, kinds.run(lines), "Accuracy by round of this run: " + found.map((c) => c.label).join(", ") + "; the numbers are in the table below.");
    setTimeout(show);
    dark.onchange = show;
    const all = [...new Set(found.flatMap((curve) => curve.x))].sort((a, b) => a - b);
    const at = found.map((curve) => new Map(curve.x.map((x, i) => [x, curve.mean[i]])));
    const numbers = all.map((x) => [Number(x.toFixed(2)), ...at.map((values) => (values.has(x) ? values.get(x).toFixed(2) : null))]);
    return [
      missing ? element("p", { class: "note" }, "Shipped and imported runs keep no validation curves.") : null,
      place,
      element("details", {}, element("summary", {}, "The curves as numbers"),
        table("Curves", ["Round", ...found.map((curve) => curve.label)], numbers, 1)),
    ];
  }

  /* Whether a board that a run stands in shows its test results at a stage and rule. */
  function isShown({ boards }, stage, rule) {
    return boards.some((board) => board.stage === stage && board.rule === rule);
  }

  /* Of a run's counts by stage, split and rule: mean over clients, over samples, std over clients and lowest, in percent;
     what its boards show first, then test before validation. */
  function summaries(run) {
    const { counts } = run;
    return ["test", "val"].filter((split) => counts[split]).flatMap((split) => counts[split].right.map(([stage, rule, right]) => {
      const { samples } = counts[split];
      const shares = right.map((correct, i) => (100 * correct) / samples[i]);
      const sum = (values) => values.reduce((total, value) => total + value, 0);
      const mean = sum(shares) / shares.length;
      const std = shares.length > 1 ? Math.sqrt(sum(shares.map((share) => (share - mean) ** 2)) / (shares.length - 1)) : null;
      const numbers = [mean, (100 * sum(right)) / sum(samples), std, Math.min(...shares)];
      const mark = split === "test" && isShown(run, stage, rule) ? "✓ " : "";
      return [mark + [stage, split === "val" ? "validation" : split, rule].join(", "), ...numbers.map((value) => fixed(value, 2))];
    })).sort((a, b) => b[0].startsWith("✓") - a[0].startsWith("✓"));
  }

  function clients(run) {
    const { test } = run.counts;
    if (!test) return [];
    const readings = test.right.map(([stage, rule, right]) => ({ name: (isShown(run, stage, rule) ? "✓ " : "") + stage + ", " + rule, right }))
      .sort((a, b) => b.name.startsWith("✓") - a.name.startsWith("✓"));
    const rows = test.clients.map((client, i) => [client, test.samples[i], ...readings.map(({ right }) => fixed((100 * right[i]) / test.samples[i], 2))]);
    return [element("h2", {}, "Clients"), element("p", { class: "note" }, "Test accuracy of every client in percent, by stage and rule."),
      table("Clients", ["Client", "Test samples", ...readings.map(({ name }) => name)], rows, 1)];
  }

  function show(hash, run, environments) {
    const { spec, code, costs } = run;
    const title = run.title + ": " + spec.dataset + ", " + spec.scenario + ", " + spec.clients + " clients, seed " + spec.seed;
    document.title = title + " · bench leaderboard";
    const origin = run.bundle ? "bundle " + run.bundle + ": " + run.trust + (run.sampled ? ", this run was made again" : "") + (run.close ? ", close but not equal" : "") : run.origin ? "shipped: " + run.origin : "own";
    const results = summaries(run);
    const second = (name) => fixed(costs["seconds_" + name], 2);
    document.getElementById("run").replaceChildren(
      element("p", { class: "path" }, run.page ? element("a", { href: root + run.page }, run.title) : run.title, " / ", element("a", { href: root + run.data }, spec.dataset)),
      element("h1", {}, title),
      facts([["State", run.state.replace("_", " ")], ["Reason", run.reason], ["Origin", origin], ["Stands on", links(run.boards)]]),
      element("h2", {}, "Make it again"),
      element("pre", { tabindex: "0" }, run.command),
      element("h2", {}, "Results"),
      ...(results.length ? [element("p", { class: "note" }, "Accuracy in percent by stage, split and selection rule; ✓: on a board. Std: sample standard deviation over clients."),
        table("Results", ["Stage, split, rule", "Mean over clients", "Mean over samples", "Std", "Lowest"], results, 1)]
        : [element("p", {}, "This run has no numbers.")]),
      ...(run.state === "done" ? [element("h2", {}, "Accuracy by round"), ...curves(run), ...clients(run)] : []).filter((part) => part !== null),
      element("h2", {}, "Costs"),
      table("Costs", ["Of the run", "Value"], [["seconds in all", second("total")], ["of these at clients", second("client")], ["at the server", second("server")],
        ["for evaluation", second("evaluation")], ["peak memory, MiB", fixed(costs.peak_memory / 2 ** 20, 0)],
        ["megabytes up", fixed(costs.bytes_up / 1e6, 3)], ["megabytes down", fixed(costs.bytes_down / 1e6, 3)]], 1),
      element("h2", {}, "Where it comes from"),
      facts([["Spec hash", hash], ["Partition hash", run.partition], ["Started", run.started + " UTC"], ["Device", run.device], ["Version", code.code_version],
        ["Source hash", code.source_hash], ["Numerics", "method " + code.method_numerics + ", engine " + code.engine_numerics]]),
      element("h3", {}, "Spec"),
      element("pre", { tabindex: "0" }, JSON.stringify(spec, null, 1)),
      element("h3", {}, "Environment"),
      element("pre", { tabindex: "0" }, run.environment === null ? "not known" : JSON.stringify(environments[run.environment], null, 1)));
  }

  function runPage(first) {
    const say = (text) => document.getElementById("run").replaceChildren(element("h1", {}, "A run"), element("p", {}, text));
    function go() {
      const hash = location.hash.slice(1);
      if (!/^[0-9a-f]{64}$/.test(hash)) return;
      let shard = -1;
      while (shard + 1 < first.length && first[shard + 1] <= hash) shard += 1;
      const script = element("script", { src: root + "data/runs-" + String(Math.max(shard, 0)).padStart(4, "0") + ".js" });
      script.onload = async () => {
        script.remove();
        if (location.hash.slice(1) !== hash) return;
        const { runs, environments } = await loaded;
        if (Object.hasOwn(runs, hash)) show(hash, runs[hash], environments);
        else say("No run with the spec hash " + hash + " is in this leaderboard.");
      };
      script.onerror = () => say("The file with this run is missing: " + script.getAttribute("src"));
      document.head.append(script);
    }
    window.addEventListener("hashchange", go);
    go();
  }

  const found = document.getElementById("board");
  if (found) board(found);
  if (document.getElementById("run")) runPage(document.body.dataset.shards.split(",").filter(Boolean));
})();
