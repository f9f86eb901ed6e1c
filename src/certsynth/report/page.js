"use strict";
// The calculator's form. Texts are only ever set as text; numbers come from `certified`.
(() => {
  const data = JSON.parse(document.getElementById("numbers").textContent);
  const form = document.getElementById("calculator-form");
  const { up, down, figure } = certified;
  // Milliseconds in a tick, its name, and how many letters of an ISO text show it.
  const CLOCKS = {
    date: { tick: 86400000, unit: "day", letters: 10, input: "date" },
    datetime: { tick: 1000, unit: "second", letters: 19, input: "datetime-local" },
  };
  const LAST_BITS = 2 ** -51;
  const columns = data.columns;
  const line = (c) => c.line && c.rows > c.absent;
  const labelled = (c) => !c.line && c.labels.length > 0 && c.rows > 0;
  const valued = (c) => line(c) && !c.ranks; // places in a list of values with unequal gaps have no mean
  const full = (c) => valued(c) && !c.missing;
  const some = (c) => line(c) || labelled(c);

  const pairs = new Map();
  if (Array.isArray(data.pairs)) for (const [i, j, b] of data.pairs) pairs.set(`${i},${j}`, b);
  const together = (i, j) => {
    if (i === j) return undefined;
    return Array.isArray(data.pairs) ? pairs.get(i < j ? `${i},${j}` : `${j},${i}`) : data.pairs;
  };
  // The certified error of shares of two columns, which exceptions have another of.
  const exceptions = new Set((data.apart?.pairs ?? []).map(([i, j]) => `${i},${j}`));
  const shareOf = (i, j) => (exceptions.has(i < j ? `${i},${j}` : `${j},${i}`) ? data.apart.share : data.share);

  // Answers of `certsynth answer` about sets of values: shares of the sets of one column (in `sides`), shares of two
  // columns, and means in the groups that are sets of another column. Their digits are shown as they are.
  const { sides } = data.answers;
  const size = (i) => sides[i].asked.length;
  const DIGITS = Array.from({ length: 94 }, (_, i) => String.fromCharCode(33 + i)).filter((c) => !"\"\\<>&'+-!.=;".includes(c)).join("");
  const LAST_DIGITS = 54;
  const FURTHER_DIGITS = DIGITS.length - LAST_DIGITS;
  const pointed = (whole, decimals) => {
    const digits = String(Math.abs(whole)).padStart(decimals + 1, "0");
    const at = digits.length - decimals;
    return `${whole < 0 ? "-" : ""}${digits.slice(0, at)}${decimals ? "." : ""}${digits.slice(at)}`;
  };
  // Answers from a text of packing.py; those about dates and times are ticks of the column's clock. null: there is none.
  const unpack = (text, c) => {
    const found = [];
    const before = {};
    let [at, decimals, nothing] = [0, 0, false];
    const signed = () => {
      let [number, unit, digit] = [0, 1, LAST_DIGITS];
      for (; digit >= LAST_DIGITS; unit *= FURTHER_DIGITS) number += unit * (digit = DIGITS.indexOf(text[at++]));
      return number % 2 ? -(number + 1) / 2 : number / 2;
    };
    const add = (texts) => {
      const [value, least, largest] = texts.map(certified.nice);
      found.push({ value, least, largest, nothing });
      nothing = false;
    };
    while (at < text.length) {
      const sign = text[at];
      if (sign === "+" || sign === "-") decimals += sign === "+" ? 1 : -1;
      else if (sign === "!") nothing = true;
      else if (sign === ".") found.push(null);
      else if (sign === "=") {
        const end = text.indexOf(";", at);
        add(text.slice(at + 1, end).split("|"));
        at = end;
      } else {
        before[decimals] = (before[decimals] || [0, 0, 0]).map((last) => last + signed());
        const [estimate, below, above] = before[decimals];
        add([estimate, estimate - below, estimate + above].map((whole) => (c && clock(c) ? dated(c, whole) : pointed(whole, decimals))));
        continue;
      }
      at += 1;
    }
    return found;
  };
  const once = (compute) => {
    let found;
    return () => (found ??= compute());
  };
  // Where answers about each pair begin: shares of its cells, and means of a column in the groups of another.
  const starts = new Map();
  const meanStarts = new Map();
  {
    const places = Object.keys(sides).map(Number).sort((a, b) => a - b);
    const every = places.flatMap((i) => places.filter((j) => j > i).flatMap((j) => [i, j]));
    const listed = data.answers.pairs || every;
    const ends = {};
    for (let k = 0, at = 0; k < listed.length; k += 2) {
      const [i, j] = [listed[k], listed[k + 1]];
      starts.set(`${i},${j}`, at);
      at += size(i) * size(j);
      for (const [groups, line] of [[i, j], [j, i]]) {
        meanStarts.set(`${groups},${line}`, ends[line] || 0);
        ends[line] = (ends[line] || 0) + size(groups);
      }
    }
  }
  const start = (i, j) => starts.get(i < j ? `${i},${j}` : `${j},${i}`);
  const table = (i, j) => start(i, j) !== undefined;
  const shares = once(() => unpack(data.answers.shares));
  const inTable = (i, p, j, q) => shares()[start(i, j) + (i < j ? p * size(j) + q : q * size(i) + p)];
  const meansOf = Object.fromEntries(Object.keys(sides).map((i) => [i, once(() => unpack(sides[i].means, columns[i]))]));
  const meanIn = (i, p, line) => meansOf[line]()[meanStarts.get(`${i},${line}`) + p];
  const sharesOf = Object.fromEntries(Object.keys(sides).map((i) => [i, once(() => unpack(sides[i].shares))]));
  const ofSet = (i, p) => sharesOf[i]()[p];
  const condition = (i, p) => sides[i].asked[p].replace("\u0001", () => columns[i].query);
  // The names of a column's sets, if they are single labels or ranges; else they are runs of ranges.
  const setNames = (i) => (sides[i].labels.length ? sides[i].labels : [...columns[i].labels, ...(sides[i].missing ? ["missing"] : [])]);
  // A command for a shell: in double quotes where these need no escapes.
  const command = (query) => `certsynth answer DIR ${/["$`\\!]/.test(query) ? `'${query.replaceAll("'", "'\\''")}'` : `"${query}"`}`;
  const isRun = (i) => sides[i].ranges.length > 0;
  // The number of the set of values from one range to another: the run of all ranges is left out.
  const runAt = (i, from, to) => {
    const n = sides[i].ranges.length;
    return (from * (2 * n - from + 1)) / 2 - (from > 0 ? 1 : 0) + to - from;
  };

  // In a column's own units.
  const span = (c) => c.high - c.low;
  const clock = (c) => CLOCKS[c.kind];
  const units = (c, times = 1) => (clock(c) ? ` ${clock(c).unit}${times === 1 ? "s" : "s²"}` : c.kind === "ordinal" ? " places" : "");
  const typed = (c, ticks) => new Date(ticks * clock(c).tick).toISOString().slice(0, clock(c).letters);
  const dated = (c, ticks) => typed(c, ticks).replace("T", " ");
  const shown = (c, x, round) => {
    let value = c.low + x * span(c);
    if (x > 0 && x < 1 && round === up) value += Math.abs(value) * LAST_BITS;
    if (x > 0 && x < 1 && round === down) value -= Math.abs(value) * LAST_BITS;
    if (clock(c)) {
      const added = certified.ROUNDING * span(c) + (x > 0 && x < 1 ? Math.abs(value) * LAST_BITS : 0); // no more than was added to the ends
      const whole = round === up ? Math.ceil(value - added) : round === down ? Math.floor(value + added) : Math.round(value);
      return dated(c, Math.min(c.high, Math.max(c.low, whole)));
    }
    return round(c.kind === "ordinal" ? value + 1 : value);
  };
  const named = (c, i) => c.labels[i] ?? `place ${i + 1}`;
  // A value that the column has: quantiles are one of them.
  const own = (c, x, round) => {
    if (!c.whole) return shown(c, x, round);
    const offset = x * span(c);
    const slack = 1e-6 + 1e-15 * span(c); // a place is rounded
    const whole = round === up ? Math.floor(offset + slack) : round === down ? Math.ceil(offset - slack) : Math.round(offset);
    if (c.kind === "ordinal") return `“${named(c, whole)}”`;
    return clock(c) ? dated(c, c.low + whole) : figure(c.low + whole);
  };
  const percent = (x, round) => `${round(100 * Math.min(1, Math.max(0, x)))}%`;
  const points = (x) => `± ${up(100 * Math.min(1, x))} percentage points`;
  const sure = `with ${data.confidence} confidence`;
  const quoted = (c) => `“${c.name}”`;
  const offBy = (r) => Math.max(r.largest - r.value, r.value - r.least);
  const there = (c) => (c.missing ? " of the values that are there" : "");
  const about = (c) => (c.moved ? "about " : ""); // near values were put together: the real rows' ends allow for it
  const light = (c) => (c.weight < 1 ? ` over its weight, ${figure(c.weight)},` : "");
  const NOTHING = "The bound is too wide to say anything about this one.";

  // What there is to choose: which columns, what else is asked, and the answer.
  const share = (c, what, r) => ({
    head: points(offBy(r)),
    says: `In the synthetic rows ${about(c)}${percent(r.value, figure)} ${what}. In the real rows it is between ${percent(r.least, down)} and ${percent(r.largest, up)}, ${sure}.`,
    nothing: r.largest - r.least >= 1,
  });
  const MOVED = "Think of the real rows as synthetic ones that were moved, by no more than the bound on average. The nearest rows outside are moved in until the bound is used up, and the nearest inside moved out.";
  const shared = (c) => (c.share < 1 ? `Shares over ranges are certified within ± ${up(100 * c.share)} percentage points, and by the bound on distances as follows; the narrower range is shown. ` : "");
  const ALL = "The range that all certified bounds allow together: those on distances, on shares and on means.";
  const labels = (...cs) => {
    const closest = Math.min(...cs.map((c) => c.closest));
    const far = closest < 1 ? `at least ${down(closest)}: the bound over that` : "the whole length: the bound";
    const [c] = cs;
    if (cs.length === 1 && c.share < c.bound / closest) return `The certified error of shares of one column, ${up(100 * c.share)} percentage points. It is the same for any group of labels.`;
    return `A row with another label counts as moved by ${far} is how many rows can differ, as a share of all. It is the same for any group of labels.`;
  };

  const between = (r, unit = "") => `between ${r.least}${unit} and ${r.largest}${unit}, ${sure}`;
  const headOf = (r, unit = "") => `${r.least}${unit} to ${r.largest}${unit}`;
  const meanOf = (c, r, look = "") => {
    const [what, which] = look ? [`${look} The`, " over those"] : ["In the synthetic rows the", ""];
    return {
      head: headOf(r),
      says: `${what} mean${c.kind === "ordinal" ? " place in the list" : ""}${there(c)} of ${quoted(c)}${which} is ${r.value}. In the real rows it is ${between(r)}.`,
      nothing: r.nothing,
    };
  };

  // Where the page has no answer: for lack of room, or because a label is none of the most frequent ones.
  const elsewhere = (ask, parts) => {
    const rare = parts.filter(([, part]) => part.rest).map(([c]) => quoted(c));
    const why = rare.length ? `This page has answers for the most frequent labels of ${rare.join(" and ")}.` : "This page has no room for the answers about these two columns.";
    if (!ask) return { head: "–", says: why, how: "" };
    const replace = rare.length ? ", with the label in place of LABEL" : "";
    return { head: "–", says: `${why} In a shell, this command answers it${replace}: ${command(ask)}`, how: "DIR is the folder that contains this page." };
  };

  const statistics = {
    mean: {
      name: "mean of a column", first: valued,
      answer: ({ c }) => {
        if (c.said) return { ...meanOf(c, unpack(c.said, c)[0]), how: ALL, ask: c.kind === "ordinal" ? "" : `mean(${c.query})` };
        const r = certified.mean(c, c.bound);
        return {
          head: `± ${up(r.off * span(c))}${units(c)}`,
          says: `In the synthetic rows the mean${there(c)} of ${quoted(c)} is ${about(c)}${shown(c, r.value, figure)}. In the real rows it is between ${shown(c, r.least, down)} and ${shown(c, r.largest, up)}, ${sure}.`,
          how: c.mean
            ? ALL
            : c.missing
            ? `The bound for the column, ${up(c.bound)},${light(c)} times the length of its range, ${figure(span(c))}${units(c)}, over the share of values that must be there.`
            : `The bound for the column, ${up(c.bound)},${light(c)} times the length of its range, ${figure(span(c))}${units(c)}.`,
          nothing: r.off >= 1 || r.largest - r.least >= 1,
        };
      },
    },
    upto: {
      name: "share of rows up to a value", first: line, asks: ["to"],
      answer: ({ c, to, text }) => ({ ...share(c, `of all rows have a value of ${quoted(c)} up to ${text.to}`, certified.range(c, c.bound, 0, to)), how: shared(c) + MOVED }),
    },
    range: {
      name: "share of rows in a range", first: line, asks: ["from", "to"],
      answer: ({ c, from, to, text }) =>
        from > to
          ? { head: "–", says: "The range ends before it begins: choose a larger “to”.", how: "" }
          : { ...share(c, `of all rows have a value of ${quoted(c)} from ${text.from} to ${text.to}`, certified.range(c, c.bound, from, to)), how: shared(c) + MOVED },
    },
    quantile: {
      name: "quantile (median, quartile, …)", first: line, asks: ["percent"],
      answer: ({ c, p }) => {
        const r = certified.quantile(c, c.bound, p);
        return {
          head: `${own(c, r.least, down)} to ${own(c, r.largest, up)}`,
          says: `In the synthetic rows at least ${figure(100 * p)}% of the values of ${quoted(c)}${c.missing ? " (leaving out those missing)" : ""} are ${about(c)}${own(c, r.value, figure)} or less. In the real rows the smallest value that so many do not exceed is between ${own(c, r.least, down)} and ${own(c, r.largest, up)}, ${sure}.`,
          how: `${shared(c)}${MOVED} A quantile is certain where values are dense, and uncertain where there are few.`,
          nothing: r.least <= 0 && r.largest >= 1,
        };
      },
    },
    variance: {
      name: "variance and standard deviation", first: valued,
      answer: ({ c }) => {
        const r = certified.variance(c, c.bound);
        const deviation = (x, round) => `${round(Math.sqrt(x) * span(c))}${units(c)}`;
        return {
          head: `± ${up(r.off * span(c) ** 2)}${clock(c) ? units(c, 2) : ""}`,
          says: `In the synthetic rows the variance${there(c)} of ${quoted(c)} is ${about(c)}${figure(r.value * span(c) ** 2)}, and in the real rows between ${down(r.least * span(c) ** 2)} and ${up(r.largest * span(c) ** 2)}: a standard deviation of ${about(c)}${deviation(r.value, figure)}, and of ${deviation(r.least, down)} to ${deviation(r.largest, up)}, ${sure}.`,
          how: c.variance ? ALL : `Twice the bound${light(c)} times the longer way from the mean to an end of the range, and the bound squared${c.missing ? ", each over the share of values that must be there" : ""}.`,
          nothing: r.least <= 0 && r.largest >= 0.25,
        };
      },
    },
    label: {
      name: "share of rows with a label", first: labelled, asks: ["label"],
      answer: ({ c, at, i, text }) => {
        const what = `of all rows have ${text.label} in ${quoted(c)}`;
        if (!sides[at] || sides[at].rest) return { ...share(c, what, certified.label(c, c.bound, i)), how: labels(c) };
        const r = ofSet(at, i);
        return { head: headOf(r, "%"), says: `In the synthetic rows ${r.value}% ${what}. In the real rows it is ${between(r, "%")}.`, how: ALL, ask: `fraction(${condition(at, i)})`, nothing: r.nothing };
      },
    },
    both: {
      name: "share of rows, by two columns", first: some, second: some,
      pair: (i, j) => Boolean(sides[i] && sides[j]) || (labelled(columns[i]) && labelled(columns[j])),
      parts: (i, j) => (sides[i] && sides[j] ? ["part", "other"] : []),
      answer: ({ c, other, bound, at, to, part, otherPart }) => {
        if (part) {
          const ask = `fraction(${part.asked} and ${otherPart.asked})`;
          const r = !part.rest && !otherPart.rest && table(at, to) ? inTable(at, part.set, to, otherPart.set) : null;
          if (!r) return elsewhere(ask, [[c, part], [other, otherPart]]);
          return {
            head: headOf(r, "%"),
            says: `In the synthetic rows ${r.value}% of all rows have ${part.text} and ${otherPart.text}. In the real rows it is ${between(r, "%")}.`,
            how: ALL,
            ask,
            nothing: r.nothing,
          };
        }
        const off = certified.combination(c, other, bound, shareOf(at, to));
        const smaller = off < certified.combination(c, other, bound);
        return {
          head: points(off),
          says: `Count the synthetic rows with any label of ${quoted(c)} and any of ${quoted(other)}, as a share of all rows. In the real rows that share differs by no more than this, ${sure}.`,
          how: smaller ? `The certified error of shares of two columns, ${up(100 * shareOf(at, to))} percentage points. It is the same for a label of the one column and any group of labels of the other.` : `The bound for the two columns, ${up(bound)}, over the smallest distance of two labels. ${labels(c, other)}`,
          nothing: off >= 1,
        };
      },
    },
    shareWithin: {
      name: "share within one category", first: labelled, asks: ["label"], second: labelled,
      answer: ({ c, i, other, bound, text, at, to }) => {
        const off = certified.shareWithin(c, i, other, bound, shareOf(at, to));
        return {
          head: points(off),
          says: `Look only at rows with ${text.label} in ${quoted(c)}, which are ${percent(c.counts[i] / c.rows, figure)} of the synthetic rows. What share of those has any label of ${quoted(other)} differs by no more than this in the real rows, ${sure}.`,
          how: `The certified error of a share of the two columns, ${up(100 * certified.combination(c, other, bound, shareOf(at, to)))} percentage points, over the share of rows that must be in the group: small groups say less.`,
          nothing: off >= 1,
        };
      },
    },
    meanWithin: {
      name: "mean within a label or range", first: some, second: valued,
      pair: (i, j) => Boolean(sides[i] && sides[j] && sides[j].means !== null) || labelled(columns[i]),
      parts: (i, j) => (sides[i] && sides[j] && sides[j].means !== null ? ["part"] : ["label"]),
      answer: ({ c, i, other, bound, text, at, to, part }) => {
        if (part) {
          const ask = other.kind === "ordinal" ? "" : `mean(${other.query} | ${part.asked})`;
          if (part.rest || !table(at, to)) return elsewhere(ask, [[c, part]]);
          const found = meanIn(at, part.set, to);
          const look = `Look only at rows with ${part.text}, which are ${ofSet(at, part.set).value}% of the synthetic rows.`;
          if (!found) return { head: "–", says: `${look} None of them has a value of ${quoted(other)}, so that nothing is known about its mean over those.`, how: "" };
          return { ...meanOf(other, found, look), how: `${ALL} Small groups say less.`, ask };
        }
        const { off } = certified.meanWithin(c, i, other, bound);
        const look = `Look only at rows with ${text.label} in ${quoted(c)}, which are ${percent(c.counts[i] / c.rows, figure)} of the synthetic rows.`;
        return {
          head: `± ${up(off * span(other))}${units(other)}`,
          says: `${look} The mean${there(other)} of ${quoted(other)} over those differs by no more than this in the real rows, ${sure}.`,
          how: `The bound for the two columns, ${up(bound)}, over the weight of the column or the smallest distance of two labels, whichever is smaller, times the length of the range, ${figure(span(other))}${units(other)}, over the share of rows that must be in the group: small groups say less.`,
          nothing: off >= 1,
        };
      },
    },
    covariance: {
      name: "covariance of two columns", first: full, second: full,
      answer: ({ c, other, bound }) => {
        const off = certified.covariance(c, other, bound, data.moment);
        const smaller = off < certified.covariance(c, other, bound);
        return {
          head: `± ${up(off * span(c) * span(other))}`,
          says: `The covariance of ${quoted(c)} and ${quoted(other)}, in the units of the one times the units of the other, differs by no more than this between the real and the synthetic rows, ${sure}.`,
          how: smaller ? "The certified errors of products and of means." : `The bound for the two columns, ${up(bound)}, over the weights, times how far values can be from the mean in either column; the ranges are ${figure(span(c))}${units(c)} and ${figure(span(other))}${units(other)}.`,
          nothing: off >= 0.5,
        };
      },
    },
  };

  // Controls.
  const make = (tag, properties = {}) => Object.assign(document.createElement(tag), properties);
  const choose = (id, options) => {
    const select = make("select", { id });
    for (const [value, name] of options) select.append(make("option", { value, textContent: name }));
    return select;
  };
  const field = (name, control) => {
    const label = make("label", { htmlFor: control.id, textContent: name });
    const box = make("div", { className: "field" });
    box.append(label, control);
    return box;
  };
  const value = (id) => document.getElementById(id)?.value;
  const indexed = (keep) => columns.map((c, i) => [i, c]).filter(([i, c]) => keep(c, i)).map(([i, c]) => [i, c.name]);
  const partners = (what, i) => indexed((c, j) => what.second(c) && together(i, j) !== undefined && (what.pair ? what.pair(i, j) : true));
  const starters = (what) =>
    indexed((c, i) => what.first(c) && (what.second ? partners(what, i).length > 0 : true));

  const place = (c, id, preset) => {
    if (c.kind === "ordinal") {
      const select = choose(id, Array.from({ length: span(c) + 1 }, (_, i) => [i, named(c, i)]));
      select.value = String(Math.round(preset * span(c)));
      return select;
    }
    const at = c.low + preset * span(c);
    if (clock(c)) return make("input", { id, type: clock(c).input, step: 1, min: typed(c, c.low), max: typed(c, c.high), value: typed(c, Math.round(at)) });
    const start = c.whole ? Math.round(at) : Number(at.toPrecision(2));
    return make("input", { id, type: "number", min: c.low, max: c.high, step: c.whole ? 1 : "any", value: Math.min(c.high, Math.max(c.low, start)) });
  };
  const NAMES = { from: "From", to: "Up to", label: "Label", percent: "Per cent of the values" };
  // Controls for a set of values of column i: one for a label, two for the ends of a range.
  const setFields = (i, id) => {
    const name = quoted(columns[i]);
    const options = (names) => names.map((text, k) => [k, text]);
    const more = sides[i].rest ? [["rest", "another label"]] : [];
    if (!isRun(i)) return [field(columns[i].line ? `Range of ${name}` : `Label of ${name}`, choose(id, [...options(setNames(i)), ...more]))];
    const { ranges, missing } = sides[i];
    const first = choose(id, [...options(ranges.map(([from]) => from)), ...(missing ? [["missing", "missing"]] : [])]);
    return [field(`${name} from`, first), field(`${name} to`, choose(`${id}-to`, options(ranges.map(([, to]) => to))))];
  };
  // The set that the reader asks for: its number, and how it is said and asked. Without a number, why there is none.
  const chosenSet = (i, id) => {
    const name = quoted(columns[i]);
    let set = Number(value(id));
    let text;
    if (value(id) === "rest") return { rest: true, asked: `${columns[i].query} = 'LABEL'` };
    if (!isRun(i)) text = setNames(i)[set] === "missing" && sides[i].missing && set === size(i) - 1 ? `no value of ${name}` : columns[i].line ? `a value of ${name} in the range ${setNames(i)[set]}` : `“${setNames(i)[set]}” in ${name}`;
    else if (value(id) === "missing") [set, text] = [size(i) - 1, `no value of ${name}`];
    else {
      const { ranges } = sides[i];
      const last = Number(value(`${id}-to`));
      if (set > last) return { wrong: `The range of ${name} ends before it begins: choose a larger “to”.` };
      if (set === 0 && last === ranges.length - 1) return { wrong: `That is every value of ${name}: choose a shorter range.` };
      text = `a value of ${name} from ${ranges[set][0]} to ${ranges[last][1]}`;
      set = runAt(i, set, last);
    }
    return { set, text, asked: condition(i, set) };
  };
  const asked = (c, ask) => {
    const id = `calc-${ask}`;
    if (ask === "label") return choose(id, c.labels.map((name, i) => [i, name]));
    if (ask === "percent") return make("input", { id, type: "number", min: 0.1, max: 99.9, step: "any", value: 50 });
    return place(c, id, ask === "from" ? 0.25 : 0.5);
  };

  // What stands in a control, as a place on the line; null if it is no value of the column.
  const read = (c, id) => {
    const text = value(id);
    if (text === "" || text === undefined) return null;
    const at = clock(c) ? Date.parse(`${text}${clock(c).letters > 10 ? "" : "T00:00"}Z`) / clock(c).tick : c.kind === "ordinal" ? c.low + Number(text) : Number(text);
    if (!Number.isFinite(at) || at < c.low || at > c.high || (c.whole && at !== Math.round(at))) return null;
    return span(c) > 0 ? (at - c.low) / span(c) : 0;
  };

  const what = document.getElementById("calc-what");
  const where = document.getElementById("calc-where");
  const head = document.getElementById("calc-head");
  const says = document.getElementById("calc-says");
  const how = document.getElementById("calc-how");
  const note = document.getElementById("calc-note");

  const chosen = () => statistics[what.value];
  const place1 = () => {
    where.replaceChildren(field(chosen().second ? "First column" : "Column", choose("calc-first", starters(chosen()))));
    place2();
  };
  const place2 = () => {
    while (where.children.length > 1) where.lastChild.remove();
    const i = Number(value("calc-first"));
    for (const ask of chosen().asks || []) where.append(field(NAMES[ask], asked(columns[i], ask)));
    if (!chosen().second) return;
    where.append(field("Second column", choose("calc-second", partners(chosen(), i))));
    place3();
  };
  const fixedFields = () => 2 + (chosen().asks || []).length;
  const parts = () => {
    const [i, j] = [Number(value("calc-first")), Number(value("calc-second"))];
    return chosen().parts ? chosen().parts(i, j).map((part) => [part, part === "other" ? j : i]) : [];
  };
  const place3 = () => {
    while (where.children.length > fixedFields()) where.lastChild.remove();
    for (const [part, i] of parts())
      where.append(...(part === "label" ? [field(NAMES.label, asked(columns[i], part))] : setFields(i, `calc-${part}`)));
  };
  const unusable = (c, ask) =>
    ask === "percent" ? "Type a per cent between 0 and 100." : `Type a value of ${quoted(c)}: from ${clock(c) ? dated(c, c.low) : figure(c.low)} to ${clock(c) ? dated(c, c.high) : figure(c.high)}${c.whole && !clock(c) ? ", a whole number" : ""}.`;

  const result = () => {
    const i = Number(value("calc-first"));
    const c = columns[i];
    const given = { c, at: i, text: {} };
    for (const ask of [...(chosen().asks || []), ...parts().map(([part]) => part).filter((part) => part === "label")]) {
      const control = document.getElementById(`calc-${ask}`);
      let wrong = false;
      if (ask === "label") {
        given.i = Number(control.value);
        given.text.label = `“${c.labels[given.i]}”`;
      } else if (ask === "percent") {
        given.p = Number(control.value) / 100;
        wrong = !(given.p > 0 && given.p < 1);
      } else {
        given[ask] = read(c, control.id);
        wrong = given[ask] === null;
        given.text[ask] = c.kind === "ordinal" ? `“${control.selectedOptions[0]?.textContent}”` : clock(c) ? control.value.replace("T", " ") : control.value;
      }
      control.toggleAttribute("aria-invalid", wrong);
      if (wrong) return { head: "–", says: unusable(c, ask), how: "" };
    }
    if (chosen().second) {
      const j = Number(value("calc-second"));
      given.other = columns[j];
      given.bound = together(i, j);
      given.to = j;
    }
    for (const [part, k] of parts().filter(([part]) => part !== "label")) {
      const found = chosenSet(k, `calc-${part}`);
      if (found.wrong) return { head: "–", says: found.wrong, how: "" };
      given[part === "other" ? "otherPart" : part] = found;
    }
    return chosen().answer(given);
  };
  const answer = () => {
    const r = result();
    head.textContent = r.head;
    says.textContent = r.nothing ? `${r.says} ${NOTHING}` : r.says;
    how.textContent = r.how;
    const c = columns[Number(value("calc-first"))];
    note.textContent = r.ask ? `As a question for certsynth answer: ${r.ask}` : c.left ? `${c.left.toLocaleString("en")} rarer labels of ${quoted(c)} are not listed: the share of each is right within the same ±.` : "";
  };

  const offered = Object.keys(statistics).filter((key) => starters(statistics[key]).length > 0);
  for (const many of [false, true]) {
    const group = make("optgroup", { label: many ? "Two columns" : "One column" });
    for (const key of offered.filter((k) => Boolean(statistics[k].second) === many))
      group.append(make("option", { value: key, textContent: statistics[key].name }));
    if (group.children.length) what.append(group);
  }
  if (!offered.length) return;
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", (event) => {
    if (event.target === what) place1();
    else if (event.target.id === "calc-first") place2();
    else if (event.target.id === "calc-second") place3();
    answer();
  });
  place1();
  answer();
  form.hidden = false;
})();
