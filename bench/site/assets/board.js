"use strict";
/* The site works without this file but for single runs; it makes boards sortable, searchable and
   filterable. All text goes into the page as text, never as HTML. */
(function () {
  const root = document.body.dataset.root;

  function element(tag, attributes, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {})) made.setAttribute(name, value);
    made.append(...children);
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

  /* A run -------------------------------------------------------------------------------------- */

  let loaded = Promise.resolve({ runs: {}, environments: {} });
  window.benchRuns = function (packed) {
    const bytes = Uint8Array.from(atob(packed), (sign) => sign.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    loaded = new Response(stream).json();
  };

  function table(label, heads, rows) {
    const cell = (value, place) => element(place ? "td" : "th", place ? { class: "number" } : { scope: "row" }, value === null ? "–" : String(value));
    return element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label },
      element("table", {},
        element("thead", {}, element("tr", {}, ...heads.map((head, place) => element("th", { scope: "col", ...(place ? { class: "number" } : {}) }, head)))),
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

  /* The curves as columns beside the rounds, which are shares of one where every local epoch was evaluated. */
  function curves(run) {
    const found = Object.entries(run.curves).flatMap(([stage, splits]) => Object.entries(splits).map(([split, curve]) => {
      const perRound = stage === "trained" && run.spec.protocol.evaluate === "epoch" ? run.spec.protocol.local_epochs : 1;
      const rounds = curve.values.map((_, i) => Math.min(i * curve.every + 1, curve.rows) / perRound);
      return { label: stage + ", " + (split === "val" ? "validation" : split), at: new Map(rounds.map((x, i) => [x, curve.values[i] / 100])) };
    }));
    if (!found.length) return [element("p", {}, "No curves are kept of this run.")];
    const rounds = [...new Set(found.flatMap(({ at }) => [...at.keys()]))].sort((a, b) => a - b);
    const rows = rounds.map((x) => [Number(x.toFixed(2)), ...found.map(({ at }) => fixed(at.get(x) ?? null, 2))]);
    const incomplete = Object.values(run.curves).some((splits) => !splits.val);
    return [
      ...(incomplete ? [element("p", { class: "note" }, "Shipped and imported runs keep no validation curves.")] : []),
      element("details", {}, element("summary", {}, "The curves as numbers"), table("Curves", ["Round", ...found.map(({ label }) => label)], rows)),
    ];
  }

  /* A stage and rule of test results with a mark if a board that the run stands in shows them; these come first. */
  function marked(run, split, readings) {
    const isShown = (stage, rule) => split === "test" && run.boards.some((board) => board.stage === stage && board.rule === rule);
    const all = readings.map(([stage, rule, right]) => ({ stage, rule, right, mark: isShown(stage, rule) ? "✓ " : "" }));
    return [...all.filter(({ mark }) => mark), ...all.filter(({ mark }) => !mark)];
  }

  /* By stage, split and rule: mean over clients, over samples, std over clients and lowest, in percent. */
  function summaries(run) {
    return ["test", "val"].filter((split) => run.counts[split]).flatMap((split) => {
      const { samples, right } = run.counts[split];
      const sum = (values) => values.reduce((total, value) => total + value, 0);
      return marked(run, split, right).map(({ stage, rule, right, mark }) => {
        const shares = right.map((correct, i) => (100 * correct) / samples[i]);
        const mean = sum(shares) / shares.length;
        const std = shares.length > 1 ? Math.sqrt(sum(shares.map((share) => (share - mean) ** 2)) / (shares.length - 1)) : null;
        const numbers = [mean, (100 * sum(right)) / sum(samples), std, Math.min(...shares)];
        return [mark + [stage, split === "val" ? "validation" : split, rule].join(", "), ...numbers.map((value) => fixed(value, 2))];
      });
    });
  }

  function clients(run) {
    const { test } = run.counts;
    if (!test) return [];
    const readings = marked(run, "test", test.right);
    const rows = test.clients.map((client, i) => [client, test.samples[i], ...readings.map(({ right }) => fixed((100 * right[i]) / test.samples[i], 2))]);
    return [element("h2", {}, "Clients"), element("p", { class: "note" }, "Test accuracy of every client in percent, by stage and rule."),
      table("Clients", ["Client", "Test samples", ...readings.map(({ stage, rule, mark }) => mark + stage + ", " + rule)], rows)];
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
        table("Results", ["Stage, split, rule", "Mean over clients", "Mean over samples", "Std", "Lowest"], results)]
        : [element("p", {}, "This run has no numbers.")]),
      ...(run.state === "done" ? [element("h2", {}, "Accuracy by round"), ...curves(run), ...clients(run)] : []),
      element("h2", {}, "Costs"),
      table("Costs", ["Of the run", "Value"], [["seconds in all", second("total")], ["of these at clients", second("client")], ["at the server", second("server")],
        ["for evaluation", second("evaluation")], ["peak memory, MiB", fixed(costs.peak_memory / 2 ** 20, 0)],
        ["megabytes up", fixed(costs.bytes_up / 1e6, 3)], ["megabytes down", fixed(costs.bytes_down / 1e6, 3)]]),
      element("h2", {}, "Where it comes from"),
      facts([["Spec hash", hash], ["Partition hash", run.partition], ["Started", run.started + " UTC"], ["Device", run.device], ["Version", code.code_version],
        ["Source hash", code.source_hash], ["Numerics", "method " + code.method_numerics + ", engine " + code.engine_numerics]]),
      element("h3", {}, "Spec"),
      element("pre", { tabindex: "0" }, JSON.stringify(spec, null, 1)),
      element("h3", {}, "Environment"),
      element("pre", { tabindex: "0" }, run.environment === null ? "not known" : JSON.stringify(environments[run.environment], null, 1)));
  }

  function runPage() {
    const hash = location.hash.slice(1);
    if (!/^[0-9a-f]{64}$/.test(hash)) return;
    const script = element("script", { src: root + "data/runs-" + hash.slice(0, 2) + ".js" });
    const missing = () => document.getElementById("run").replaceChildren(element("h1", {}, "A run"),
      element("p", {}, "No run with the spec hash " + hash + " is in this leaderboard."));
    script.onload = async () => {
      script.remove();
      const { runs, environments } = await loaded;
      if (location.hash.slice(1) !== hash) return;
      if (Object.hasOwn(runs, hash)) show(hash, runs[hash], environments);
      else missing();
    };
    script.onerror = missing;
    document.head.append(script);
  }

  const found = document.getElementById("board");
  if (found) board(found);
  if (document.getElementById("run")) {
    window.addEventListener("hashchange", runPage);
    runPage();
  }
})();
