"use strict";
// The table of scored rows: sorted, filtered, searched, and drawn 50 rows at a time. Data only ever become text nodes.
(() => {
  const data = JSON.parse(document.getElementById("scored-data").textContent);
  const [ID, CELLS, VALUE, INTERCEPT, STATUS, ERROR, REASON, NUMBERS, ADDS, REASONS, FAILED] = Array(11).keys();
  const SIZE = 50, NONE = "–", rows = data.rows;
  const table = document.querySelector("table.scored"), body = table.tBodies[0];
  const state = { page: 0, sort: -1, down: false, adds: data.adds, open: new Set() };

  const make = (tag, properties = {}, ...children) => {
    const made = Object.assign(document.createElement(tag), properties);
    made.append(...children);
    return made;
  };
  const isolated = (text) => make("bdi", {}, text);
  const minus = (text) => text.replace("-", "−");
  const raw = (number) => number == null ? NONE : minus(String(Number(number.toPrecision(4))));
  const sign = (number, plus) => number < 0 ? "−" : number > 0 ? plus : "";
  const rounded = (number, more) => Number((number ?? 0).toFixed(data.digits + more));
  const points = (number, more = 0, plus = "") => number == null ? NONE : sign(rounded(number, more), plus) + Math.abs(number).toFixed(data.digits + more);
  const signed = (number, more) => points(number, more, "+");
  const short = (text) => text.length > 80 ? text.slice(0, 80) + "…" : text;
  const total = (numbers) => numbers.reduce((sum, number) => sum + (number ?? 0), 0);

  // Columns: how to read a row's number or text, and how to show it.
  const partNumber = (place) => (row) => row[state.adds ? ADDS : NUMBERS][place];
  const columns = [
    { name: "id", text: (row) => row[ID] },
    ...(data.value == null ? [] : [{ name: data.value, number: (row) => row[VALUE] }]),
    ...data.cells.map((name, place) => {
      const text = (row) => row[CELLS][place];
      const known = rows.map(text).filter((cell) => cell.trim() !== "");
      const numeric = known.length > 0 && known.every((cell) => Number.isFinite(Number(cell)));
      return { name, text, cell: true, number: numeric ? (row) => text(row).trim() === "" ? null : Number(text(row)) : undefined };
    }),
    ...data.parts.map(([name, meaning], place) => ({ name, meaning, number: partNumber(place), part: place })),
  ];
  const largest = Math.max(1e-12, ...rows.map((row) => Math.max(0, ...row[ADDS].map((one) => Math.abs(one ?? 0)))));

  // Controls.
  const labelled = (text, ...fields) => make("label", {}, make("span", {}, text), ...fields);
  const options = (pairs) => pairs.map(([value, text]) => make("option", { value }, text));
  const number = (label) => make("input", { type: "number", step: "any", ariaLabel: label });
  const failures = [...new Set(rows.flatMap((row) => [row[STATUS], ...Object.values(row[FAILED]).map(([status]) => status)]))].filter((status) => status !== "ok").sort();
  const search = make("input", { type: "search", id: "search", placeholder: "in ids, texts, reasons, errors" });
  const status = make("select", { id: "status" }, ...options([
    ["", "all"], ["complete", "nothing missing"], ["missing", "something missing"],
    ...(data.value == null ? [] : [["none", "no value"]]), ...failures.map((name) => [`=${name}`, `failed: ${name}`]),
  ]));
  const low = number("value from"), high = number("value to");
  const part = make("select", { id: "part" }, ...options([["", `any ${data.word}`], ...data.parts.map(([name], place) => [place, name])]));
  const partLow = number(`${data.word} from`), partHigh = number(`${data.word} to`);
  const sort = make("select", { id: "sort" }, ...options([[-1, "order of the data"], ...columns.map(({ name }, place) => [place, name])]));
  const turn = make("button", { type: "button", id: "turn" });
  const shown = make("select", { id: "shown" }, ...options([["adds", "what it adds"], ["own", "its own number"]]));
  const reset = make("button", { type: "reset", id: "reset" }, "Clear filters");
  Object.assign(low, { id: "low" }); Object.assign(high, { id: "high" });
  Object.assign(partLow, { id: "part-low" }); Object.assign(partHigh, { id: "part-high" });
  const form = make("form", { className: "controls", role: "search" },
    labelled("Search", search), labelled("Rows", status), ...(data.adds ? [labelled("Of a component show", shown)] : []),
    ...(data.value == null ? [] : [make("fieldset", {}, make("legend", {}, isolated(data.value)), low, " to ", high)]),
    ...(data.parts.length ? [make("fieldset", {}, make("legend", {}, data.word[0].toUpperCase() + data.word.slice(1)), part, partLow, " to ", partHigh)] : []),
    make("fieldset", {}, make("legend", {}, "Sort by"), sort, turn), reset);
  const said = make("p", { className: "said", role: "status" });
  const step = (text, label, move) => make("button", { type: "button", ariaLabel: label, onclick: () => { state.page = move(); draw(); } }, text);
  const last = () => Math.max(0, Math.ceil(state.found.length / SIZE) - 1);
  const where = make("span", {});
  const back = step("‹", "previous rows", () => state.page - 1), on = step("›", "next rows", () => state.page + 1);
  const first = step("«", "first rows", () => 0), end = step("»", "last rows", last);
  const pager = make("div", { className: "pager", role: "group", ariaLabel: "Rows shown" }, first, back, where, on, end);
  table.parentElement.before(form, said);
  table.parentElement.after(pager);

  const headers = [...table.tHead.rows[0].cells];
  headers.forEach((cell, place) => {
    const button = make("button", { type: "button", onclick: () => order(place) }, ...cell.childNodes);
    if (columns[place].cell) cell.className = "text";
    if (columns[place].meaning) button.title = columns[place].meaning;
    cell.append(button);
  });

  // Search: everything of a row in lower case, made while nothing else is to do, the rest when it is needed.
  const texts = [];
  const searchable = (row) => [row[ID], ...row[CELLS], row[ERROR], row[REASON], ...Object.values(row[REASONS]),
    ...Object.values(row[FAILED]).map(([, error]) => error)].join("\n").toLowerCase();
  const prepare = (time) => {
    while (texts.length < rows.length && time.timeRemaining() > 1) texts.push(searchable(rows[texts.length]));
    if (texts.length < rows.length) requestIdleCallback(prepare);
  };

  const between = (from, to) => {
    const [least, most] = [from, to].map((input) => input.valueAsNumber);
    if (Number.isNaN(least) && Number.isNaN(most)) return null;
    return (number) => number != null && !(number < least) && !(number > most);
  };
  const kept = () => {
    const wanted = search.value.trim().toLowerCase(), value = between(low, high), component = part.value === "" ? null : between(partLow, partHigh);
    if (wanted) prepare({ timeRemaining: () => Infinity });
    const read = partNumber(Number(part.value)), kind = status.value;
    const lost = (row) => row[STATUS] !== "ok" || Object.keys(row[FAILED]).length > 0;
    const right = {
      "": () => true, complete: (row) => !lost(row), missing: lost, none: (row) => row[VALUE] == null,
    }[kind] ?? ((row) => `=${row[STATUS]}` === kind || Object.values(row[FAILED]).some(([name]) => `=${name}` === kind));
    return [...rows.keys()].filter((place) => {
      const row = rows[place];
      return right(row) && (!value || value(row[VALUE])) && (!component || component(read(row))) && (!wanted || texts[place].includes(wanted));
    });
  };
  const collator = new Intl.Collator("en", { numeric: true });
  const sorted = (places) => {
    const column = columns[state.sort];
    if (!column) return state.down ? places.reverse() : places;
    const keys = new Map(places.map((place) => [place, column.number ? column.number(rows[place]) : column.text(rows[place]).slice(0, 200)]));
    const compare = column.number ? (a, b) => a - b : collator.compare, sign = state.down ? -1 : 1;
    const empty = (key) => key == null || key === "";
    return places.sort((a, b) => {
      const [x, y] = [keys.get(a), keys.get(b)];
      return empty(x) || empty(y) ? empty(x) - empty(y) : sign * compare(x, y);
    });
  };

  // A row, and what opens below it.
  const lacks = (row) => row[STATUS] !== "ok" ? row[STATUS] : Object.keys(row[FAILED]).length ? `${Object.keys(row[FAILED]).length} missing` : "";
  const line = (place) => {
    const row = rows[place], open = state.open.has(place), lack = lacks(row);
    const cells = columns.slice(1).map((column) => {
      if (column.cell) return make("td", { className: "text" }, isolated(short(column.text(row))));
      const written = column.part == null ? points(row[VALUE]) : state.adds ? signed(column.number(row)) : raw(column.number(row));
      return make("td", {}, written);
    });
    const button = make("button", { type: "button", ariaExpanded: String(open) }, isolated(short(row[ID])));
    const head = make("th", { scope: "row" }, button, ...(lack ? [make("span", { className: "sub lack" }, lack)] : []));
    const drawn = make("tr", { className: "row" }, head, ...cells);
    drawn.dataset.place = place;
    return open ? [drawn, detail(row)] : [drawn];
  };
  const text = (name, content) => {
    const shown = make("p", { dir: "auto" }, content === "" ? "(empty)" : content);
    if (content.length > 600) shown.tabIndex = 0;
    return make("div", {}, make("h4", {}, isolated(name)), shown);
  };
  const component = (row, place) => {
    const [name, meaning] = data.parts[place], lost = row[FAILED][place], adds = row[ADDS][place];
    const item = make("li", { className: lost ? "lost" : "" }, make("span", { className: "name", title: meaning }, isolated(name)), make("span", { className: "own" }, raw(row[NUMBERS][place])));
    if (data.adds) {
      const bar = make("span", { className: adds < 0 ? "bar down" : "bar up" }), share = 50 * Math.abs(adds ?? 0) / largest;
      bar.style.width = `${share}%`;
      bar.style.marginLeft = `${adds < 0 ? 50 - share : 50}%`;
      item.append(make("span", { className: "track", ariaHidden: "true" }, bar), make("span", { className: "adds" }, lost ? "counts 0" : signed(adds, 1)));
    }
    if (lost) item.append(make("p", { className: "lack", dir: "auto" }, `no value, ${lost[0]}: ${lost[1]}`));
    if (row[REASONS][place]) item.append(make("p", { dir: "auto" }, row[REASONS][place]));
    return item;
  };
  const sum = (row) => {
    if (data.value == null) return [];
    if (row[VALUE] == null) return [make("p", { className: "sum lack", dir: "auto" }, `no value, ${row[STATUS]}: ${row[ERROR]}`)];
    const value = make("p", { className: "sum" }, make("strong", {}, points(row[VALUE], 1)));
    if (data.adds) value.append(` = ${points(row[INTERCEPT], 1)} for a row that is average in every component ${signed(rounded(row[VALUE], 1) - rounded(row[INTERCEPT], 1), 1).replace(/^([+−]?)/, (sign) => `${sign || "+"} `)} from the components`);
    return [value];
  };
  const heads = () => make("li", { className: "heads" }, make("span", {}, data.word), make("span", { className: "own" }, "number"),
    ...(data.adds ? [make("span"), make("span", { className: "adds" }, "adds")] : []));
  const detail = (row) => {
    const size = (place) => row[FAILED][place] ? -1 : Math.abs(row[ADDS][place] ?? 0);
    const places = [...data.parts.keys()].sort((a, b) => size(b) - size(a));
    const numbers = make("div", {}, ...sum(row), ...(row[REASON] ? [text("Reason", row[REASON])] : []),
      make("ul", { className: data.adds ? "parts" : "parts plain" }, ...(places.length ? [heads()] : []), ...places.map((place) => component(row, place))));
    const id = make("p", { className: "muted" }, "id ", isolated(row[ID]));
    const texts = make("div", { className: "texts" }, id, ...data.cells.map((name, place) => text(name, row[CELLS][place])));
    return make("tr", { className: "detail" }, make("td", { colSpan: columns.length }, make("div", { className: "opened" }, texts, numbers)));
  };

  const draw = () => {
    const start = state.page * SIZE, here = state.found.slice(start, start + SIZE);
    body.replaceChildren(...here.flatMap(line));
    const count = (number) => number.toLocaleString("en");
    where.textContent = here.length ? `${count(start + 1)} to ${count(start + here.length)}` : "0";
    first.disabled = back.disabled = state.page === 0;
    on.disabled = end.disabled = state.page >= last();
    headers.forEach((cell, place) => {
      if (place === state.sort) cell.ariaSort = state.down ? "descending" : "ascending";
      else cell.ariaSort = null;
    });
    turn.textContent = state.down ? "↓ falling" : "↑ rising";
    sort.value = String(state.sort);
    const values = state.found.map((place) => rows[place][VALUE]).filter((value) => value != null);
    said.textContent = `${count(state.found.length)} of ${count(rows.length)} rows` + (values.length ? `, mean ${points(total(values) / values.length)}` : "");
  };
  const apply = () => {
    state.adds = data.adds && shown.value === "adds";
    state.found = sorted(kept());
    state.page = 0;
    draw();
  };
  const order = (place) => {
    state.down = place === state.sort && !state.down;
    state.sort = place;
    apply();
  };
  body.addEventListener("click", (event) => {
    const drawn = event.target.closest("tr.row");
    if (!drawn || (String(getSelection()) && !event.target.closest("button"))) return;
    const place = Number(drawn.dataset.place), opens = !state.open.delete(place);
    if (opens) { state.open.add(place); drawn.after(detail(rows[place])); } else drawn.nextElementSibling.remove();
    drawn.querySelector("button").ariaExpanded = String(opens);
  });
  sort.addEventListener("change", () => { state.sort = Number(sort.value); apply(); });
  turn.addEventListener("click", () => { state.down = !state.down; apply(); });
  form.addEventListener("input", (event) => { if (event.target !== sort) apply(); });
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => { Object.assign(state, { sort: -1, down: false }); setTimeout(apply); });
  for (const bar of document.querySelectorAll("rect[data-low]")) {
    const key = bar.closest("svg").classList[1].replace("plot-", "");
    const choose = () => {
      const [from, to] = key === "value" ? [low, high] : [partLow, partHigh];
      if (key !== "value") part.value = key.replace("part-", "");
      [from.value, to.value] = [bar.dataset.low, bar.dataset.high];
      apply();
      form.scrollIntoView({ block: "start" });
    };
    bar.setAttribute("tabindex", "0");
    bar.setAttribute("role", "button");
    bar.setAttribute("aria-label", bar.textContent);
    bar.addEventListener("click", choose);
    bar.addEventListener("keydown", (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); choose(); } });
  }
  apply();
  window.requestIdleCallback?.(prepare);
})();
