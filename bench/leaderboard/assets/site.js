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

  /* Numbers as text; rows without a number come last in either direction. */
  function numbers(sign) {
    return (a, b) => (a === "" || b === "" ? (a === "") - (b === "") : sign * (Number(a) - Number(b)));
  }

  function board(table) {
    DataTable.ext.type.order["number-asc"] = numbers(1);
    DataTable.ext.type.order["number-desc"] = numbers(-1);
    const region = table.parentElement;
    const heads = [...table.tHead.rows[0].cells];
    const numeric = heads.flatMap((head, place) => (head.classList.contains("number") ? [place] : []));
    const made = new DataTable(table, {
      order: [],
      autoWidth: false,
      pageLength: 50,
      lengthMenu: [25, 50, 100, { label: "all", value: -1 }],
      columnDefs: [{ targets: numeric, type: "number" }],
      language: { lengthMenu: "Rows: _MENU_", search: "Search:", info: "_START_ to _END_ of _TOTAL_ rows",
                  infoFiltered: "(_MAX_ in all)", infoEmpty: "no rows", zeroRecords: "No row passes the filters." },
    });
    const scroller = table.closest(".dt-layout-cell");
    for (const name of ["tabindex", "role", "aria-label"]) {
      scroller.setAttribute(name, region.getAttribute(name));
      region.removeAttribute(name);
    }
    region.classList.remove("scroll");

    const form = document.getElementById("filters");
    const selects = [...form.querySelectorAll("select")];
    form.hidden = false;
    made.search.fixed("selects", (text, data, row) => {
      const shown = made.row(row).node().dataset;
      return selects.every((select) => select.value === "" || shown[select.name] === select.value);
    });

    let reading = false;
    function save() {
      if (reading) return;
      const state = new URLSearchParams();
      for (const select of selects) if (select.value) state.set(select.name, select.value);
      if (made.search()) state.set("q", made.search());
      const [first] = made.order();
      if (first && first[1]) state.set("sort", first[0] + "." + first[1]);
      const text = state.toString();
      if (text) history.replaceState(null, "", "#" + text);
      else if (location.hash.includes("=")) history.replaceState(null, "", location.pathname + location.search);
    }
    function read() {
      const hash = decodeURIComponent(location.hash.slice(1));
      reading = true;
      if (location.hash.includes("=")) {
        const state = new URLSearchParams(location.hash.slice(1));
        for (const select of selects) {
          const known = [...select.options].some((option) => option.value === state.get(select.name));
          select.value = known ? state.get(select.name) : "";
        }
        const [place, direction] = (state.get("sort") || "").split(".");
        const order = /^\d+$/.test(place) && Number(place) < heads.length && ["asc", "desc"].includes(direction);
        made.search(state.get("q") || "").order(order ? [[Number(place), direction]] : []).draw();
      } else if (hash && made.rows((i, d, row) => row.id === hash).any()) {
        for (const select of selects) select.value = "";
        made.search("").order([]).draw();
        const order = made.rows({ order: "applied" }).nodes().toArray().findIndex((row) => row.id === hash);
        made.page(Math.floor(order / made.page.len())).draw("page");
        document.getElementById(hash).scrollIntoView({ block: "center" });
      }
      reading = false;
    }
    form.addEventListener("change", () => made.draw());
    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("reset", () => setTimeout(() => made.search("").order([]).draw()));
    made.on("draw", save);
    window.addEventListener("hashchange", read);
    read();
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
        font: "Charter, Cambria, Georgia, serif",
        view: { stroke: null },
        axis: { ...text, gridColor: line, domainColor: soft, tickColor: soft },
        legend: { ...text, symbolSize: 70, symbolOpacity: 1, symbolLimit: 200, labelLimit: 220 },
      },
    };
  }

  function drawn(place, spec, description) {
    const { config } = theme();
    const width = Math.min(760, place.clientWidth - 4);
    const narrow = width < 560;
    config.legend = { ...config.legend, orient: narrow ? "bottom" : "right", columns: narrow ? 2 : 1, title: null };
    const whole = { ...spec, width, description, autosize: { type: "fit-x", contains: "padding" }, config };
    return vegaEmbed(place, whole, {
      mode: "vega-lite", renderer: "svg", actions: false, ast: true, defaultStyle: false,
      tooltip: { disableDefaultStyle: true },
    });
  }

  /* A method's colour, dashes and symbol; black is drawn in the ink of the page. */
  function scales(labels, looks) {
    const { ink } = theme();
    const of = (key) => ({ domain: labels, range: labels.map((label) => looks[label][key]) });
    const colour = of("colour");
    colour.range = colour.range.map((value) => (value === "#000000" ? ink : value));
    return {
      color: { field: "label", type: "nominal", scale: colour },
      shape: { field: "label", type: "nominal", scale: of("symbol") },
      strokeDash: { field: "label", type: "nominal", scale: of("dashes") },
    };
  }

  function names(rows) {
    return [...new Set(rows.map((row) => row.label))];
  }

  const ACCURACY = "Test accuracy (%)";

  const kinds = {
    clients(panel, looks) {
      const labels = names(panel.rows);
      const { color, shape } = scales(labels, looks);
      const { ink, soft } = theme();
      const y = { field: "label", type: "nominal", sort: labels, title: null };
      const x = { field: "value", type: "quantitative", title: ACCURACY, scale: { zero: false } };
      const layer = [
        { mark: { type: "boxplot", extent: "min-max", size: 14, color: soft, opacity: 0.35, box: { color: soft },
                  median: { color: ink, opacity: 1 }, tooltip: false }, encoding: { x, y } },
        { mark: { type: "point", filled: true, size: 22, opacity: 0.9 },
          encoding: { x, y, color: { ...color, legend: null }, shape: { ...shape, legend: null },
                      tooltip: [{ field: "label", title: "Method" }, { field: "client", title: "Client" },
                                { field: "value", title: "Accuracy", type: "quantitative", format: ".2f" }] } },
      ];
      if (panel.mark !== null) {
        layer.push({ data: { values: [{ mark: panel.mark }] }, mark: { type: "rule", strokeDash: [5, 3], color: ink },
                     encoding: { x: { field: "mark", type: "quantitative" } } });
      }
      return { data: { values: panel.rows }, height: 24 * labels.length, layer };
    },
    costs(panel, looks) {
      const rows = panel.rows.map((row) => ({ ...row, low: row.mean - (row.std || 0), high: row.mean + (row.std || 0) }));
      const { color, shape } = scales(names(rows), looks);
      /* Logarithmic from the least cost on; below it linear, so that methods that cost nothing have a place. */
      const costs = rows.map((row) => row.cost).filter((cost) => cost > 0);
      const least = costs.length ? Math.min(...costs) : 1;
      const most = costs.length ? Math.max(...costs) : 1;
      const values = costs.length < rows.length ? [0] : [];
      for (let power = 10 ** Math.floor(Math.log10(least / 2)); power <= most; power *= 10) values.push(power, 2 * power, 5 * power);
      const domain = [values[0] === 0 ? 0 : least / 1.3, 1.2 * most];
      const x = { field: "cost", type: "quantitative", title: panel.axis,
                  scale: { type: "symlog", constant: least / 4, domain, nice: false },
                  axis: { values: values.filter((value) => value === 0 || (value >= least / 2 && value <= domain[1])) } };
      const tooltip = [{ field: "label", title: "Method" }, { field: "cost", title: panel.axis, type: "quantitative", format: ",.2f" },
                       { field: "mean", title: "Accuracy", type: "quantitative", format: ".2f" },
                       { field: "std", title: "Std", type: "quantitative", format: ".2f" }, { field: "n", title: "Seeds" }];
      return {
        data: { values: rows }, height: 320,
        layer: [
          { mark: { type: "rule", opacity: 0.6 }, encoding: { x, color, y: { field: "low", type: "quantitative", title: ACCURACY, scale: { zero: false } }, y2: { field: "high" } } },
          { mark: { type: "point", filled: true, size: 90, opacity: 1 }, encoding: { x, y: { field: "mean", type: "quantitative", title: ACCURACY }, color, shape, tooltip } },
        ],
      };
    },
    rounds(panel, looks) {
      const last = Math.max(...panel.rows.map((row) => row.x[row.x.length - 1]));
      const rows = [];
      let lowest = 100;
      for (const { label, x, mean, std } of panel.rows) {
        if (x.length === 1) { /* a method that does not train is a level */
          for (const place of [0, last]) rows.push({ label, x: place, mean: mean[0], low: mean[0], high: mean[0] });
          lowest = Math.min(lowest, mean[0]);
          continue;
        }
        const step = Math.max(1, Math.floor(x.length / 8));
        x.forEach((place, i) => rows.push({ label, x: place, mean: mean[i], low: mean[i] - (std[i] || 0),
                                            high: mean[i] + (std[i] || 0), marked: i % step === step - 1 }));
        lowest = Math.min(lowest, ...mean.slice(Math.floor(mean.length / 10)));
      }
      const { color, shape, strokeDash } = scales(names(rows), looks);
      const x = { field: "x", type: "quantitative", title: panel.axis[0].toUpperCase() + panel.axis.slice(1) };
      const y = { type: "quantitative", title: ACCURACY, scale: { zero: false, domainMin: Math.max(0, 5 * Math.floor(lowest / 5 - 1)) } };
      return {
        data: { values: rows }, height: 340,
        layer: [
          { mark: { type: "area", opacity: 0.13, clip: true }, encoding: { x, y: { ...y, field: "low" }, y2: { field: "high" }, color } },
          { mark: { type: "line", strokeWidth: 1.6, clip: true }, encoding: { x, y: { ...y, field: "mean" }, color, strokeDash } },
          { transform: [{ filter: { field: "marked", equal: true } }], mark: { type: "point", filled: true, size: 34, opacity: 1, clip: true },
            encoding: { x, y: { ...y, field: "mean" }, color, shape, tooltip: [{ field: "label", title: "Method" }, { field: "x", title: panel.axis, type: "quantitative" }, { field: "mean", title: "Accuracy", type: "quantitative", format: ".2f" }] } },
        ],
      };
    },
  };
  kinds.megabytes = kinds.seconds = kinds.costs;

  window.benchCharts = function (data) {
    const select = document.getElementById("task");
    for (const name of Object.keys(data.tasks)) select.append(element("option", { value: name }, name));
    function draw() {
      const task = data.tasks[select.value];
      for (const place of document.querySelectorAll(".chart")) {
        const panel = task[place.dataset.kind];
        if (!panel) {
          place.replaceChildren(element("p", { class: "empty" }, "No numbers for this task."));
          continue;
        }
        const text = place.dataset.title + ", " + task.title + ", of " + names(panel.rows).join(", ") + "; the numbers are in the CSV file.";
        drawn(place, kinds[place.dataset.kind](panel, data.looks), text);
      }
    }
    select.addEventListener("change", draw);
    dark.addEventListener("change", draw);
    draw();
  };

  /* A run -------------------------------------------------------------------------------------- */

  let loaded = {};
  let environments = {};
  window.benchRuns = function (runs, machines) {
    loaded = runs;
    environments = machines;
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
    const looks = Object.fromEntries(found.map(({ label }) => [label, {
      colour: label.startsWith("trained") ? "#0072b2" : "#d55e00", dashes: label.endsWith("validation") ? [6, 3] : [1, 0],
      symbol: label.endsWith("validation") ? "circle" : "square" }]));
    const place = element("div", { class: "chart", tabindex: "0", role: "region", "aria-label": "Chart: accuracy by round" });
    const panel = { rows: found.map((curve) => ({ ...curve, std: curve.mean.map(() => 0) })), axis: "round" };
    const show = () => drawn(place, kinds.rounds(panel, looks), "Accuracy by round of this run: " + found.map((c) => c.label).join(", ") + "; the numbers are in the table below.");
    setTimeout(show);
    dark.onchange = show;
    const all = [...new Set(found.flatMap((curve) => curve.x))].sort((a, b) => a - b);
    const at = found.map((curve) => new Map(curve.x.map((x, i) => [x, curve.mean[i]])));
    const lines = all.map((x) => [Number(x.toFixed(2)), ...at.map((values) => (values.has(x) ? values.get(x).toFixed(2) : null))]);
    return [
      missing ? element("p", { class: "note" }, "Bundles keep no validation curves.") : null,
      place,
      element("details", {}, element("summary", {}, "The curves as numbers"),
        table("Curves", ["Round", ...found.map((curve) => curve.label)], lines, 1)),
    ];
  }

  function clients(run) {
    const { clients, samples, values } = run.accuracies;
    if (!clients) return [];
    const heads = ["Client", "Test samples", ...values.map(([stage, rule]) => stage + ", " + rule)];
    const rows = clients.map((client, i) => [client, samples[i], ...values.map(([, , numbers]) => fixed(numbers[i], 2))]);
    return [element("h2", {}, "Clients"), element("p", { class: "note" }, "Test accuracy of every client in percent, by stage and rule."), table("Clients", heads, rows, 1)];
  }

  function show(hash, run) {
    const { spec, code, costs } = run;
    const title = run.title + ": " + spec.dataset + ", " + spec.scenario + ", " + spec.clients + " clients, seed " + spec.seed;
    document.title = title + " · bench leaderboard";
    const origin = run.bundle ? "bundle " + run.bundle + ": " + run.trust : run.origin ? "shipped: " + run.origin : "own";
    const results = run.results.map(([stage, split, rule, ...numbers]) => [stage, split === "val" ? "validation" : split, rule, ...numbers.map((value) => fixed(value, 2))]);
    const second = (name) => fixed(costs["seconds_" + name], 2);
    document.getElementById("run").replaceChildren(
      element("p", { class: "path" }, run.page ? element("a", { href: root + run.page }, run.title) : run.title),
      element("h1", {}, title),
      facts([["State", run.state.replace("_", " ")], ["Reason", run.reason], ["Origin", origin]]),
      element("h2", {}, "Make it again"),
      element("pre", { tabindex: "0" }, run.command),
      element("h2", {}, "Results"),
      ...(results.length ? [element("p", { class: "note" }, "Accuracy in percent by stage, split and selection rule; std: sample standard deviation over clients."),
        table("Results", ["Stage", "Split", "Rule", "Mean over clients", "Mean over samples", "Std", "Lowest"], results, 3)]
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
      script.onload = () => {
        script.remove();
        if (location.hash.slice(1) !== hash) return;
        if (Object.hasOwn(loaded, hash)) show(hash, loaded[hash]);
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
