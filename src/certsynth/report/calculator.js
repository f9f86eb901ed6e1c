"use strict";
// What a bound means for a statistic. Plain functions of numbers: columns are those of calculator.py, lines have
// length 1, and every result is rounded outward. b is a bound, L how steep a function is: its average is off by at most L·b.
// Shares also have a certified error of their own: `share` of a column, or of two columns; 1 says nothing.
const certified = (() => {
  const ROUNDING = 1e-12;

  // A bound, raised as `answer` raises it: more than sums of a few hundred floats can be off by. All else follows from
  // the raised bound, so that a short distance divides both by the same amount.
  const raised = (bound) => bound * (1 + 1e-9) + ROUNDING;

  // How far rows of a column may be moved on average, with the line as the unit.
  const budget = (column, bound) => Math.min(1, raised(bound) / column.weight + (column.moved || 0) + (column.slack || 0));

  const places = (column) => column.codes.map((code) => Math.min(1, code / column.per));

  // The largest share that rows at these distances from a set can have in it: the nearest move in until it is spent.
  const most = (gaps, counts, rows, spend) => {
    const order = gaps.map((_, i) => i).sort((a, b) => gaps[a] - gaps[b]);
    let inside = 0; // a whole number, so it has no rounding error
    let left = spend;
    for (const i of order) {
      const cost = (gaps[i] * counts[i]) / rows;
      if (cost > left) return Math.min(1, inside / rows + left / gaps[i]);
      inside += counts[i];
      left -= cost;
    }
    return Math.min(1, inside / rows);
  };

  const apart = (a, b) => a.least > b.largest || b.least > a.largest;
  // What two ranges say together. If they contradict each other, both are too narrow: then what contains both.
  const meet = (a, b) => {
    const [outer, inner] = apart(a, b) ? [Math.max, Math.min] : [Math.min, Math.max];
    return { least: inner(a.least, b.least), largest: outer(a.largest, b.largest) };
  };
  const clamp = (x, range) => Math.max(range.least, Math.min(range.largest, x));

  // Cells [first, last, rows] of which any run has a certified share: those that hold rows, in multiples of 1 / unit.
  // They are carried as numbers in turn: how far a cell is from the one before, how long it is, and its rows.
  const PLACES = 1e6;
  const unit = (column) => (column.whole ? column.per : PLACES);
  const cells = (column) => {
    if (!column.cells) return column.codes.map((code, i) => [code, code, column.counts[i]]);
    const found = [];
    for (let i = 0, at = 0; i < column.cells.length; i += 3) {
      const first = at + column.cells[i];
      at = first + column.cells[i + 1];
      found.push([first, at, column.cells[i + 2]]);
    }
    return found;
  };
  const hasShares = (column) => column.share < 1;
  const VACUOUS = { least: 0, largest: 1 };

  // The share of synthetic rows in cells inside of from..to, and in those that it meets.
  const inCells = (column, from, to) => {
    const [low, high] = [from, to].map((x) => (column.whole ? Math.round(x * unit(column)) : x * unit(column)));
    let [least, largest] = [0, 0];
    for (const [first, last, rows] of cells(column)) {
      if (first >= low && last <= high) least += rows;
      if (last >= low && first <= high) largest += rows;
    }
    return { least: least / column.rows, largest: largest / column.rows };
  };
  const widened = (r, off) => ({ least: Math.max(0, r.least - off), largest: Math.min(1, r.largest + off) });

  // Where the p-quantile lies by the shares of values below and above each cell: with F the share up to a value, of all
  // rows, F − p·F(all) is off by at most the error of a share.
  const quantileByShares = (column, p) => {
    const off = raised(column.share);
    const aim = (p * (column.rows - column.absent)) / column.rows;
    let [sum, least, largest] = [0, off - aim >= -ROUNDING ? 0 : undefined, 1]; // rows may lie below the first cell
    for (const [first, last, rows] of cells(column)) {
      sum += rows;
      const above = sum / column.rows - aim;
      if (least === undefined && above + off >= -ROUNDING) least = first / unit(column);
      if (above - off > ROUNDING) {
        largest = last / unit(column);
        break;
      }
    }
    return { least: least ?? 1, largest };
  };

  // The share of all rows with a value from..to, as places on the line. `step`: how far the next value is.
  const range = (column, bound, from, to) => {
    const step = column.whole ? 1 / column.per : 0;
    const near = 1e-9;
    const at = places(column);
    const counts = [...column.counts, column.absent];
    const spend = budget(column, bound);
    const inside = at.map((x) => x >= from - near && x <= to + near);
    const enter = at.map((x, i) => (inside[i] ? 0 : x < from ? from - x : x - to));
    const below = from > 0;
    const above = to < 1;
    const leave = at.map((x, i) => {
      if (!inside[i]) return 0;
      const ways = [1]; // to be missing
      if (below) ways.push(x - from + step);
      if (above) ways.push(to + step - x);
      return Math.max(0, Math.min(...ways));
    });
    const value = at.reduce((sum, _, i) => sum + (inside[i] ? column.counts[i] : 0), 0) / column.rows;
    const largest = most([...enter, 1], counts, column.rows, spend);
    if (!below && !above && !column.missing) return { value, least: 1, largest };
    const moved = { least: 1 - most([...leave, 0], counts, column.rows, spend), largest };
    if (!hasShares(column)) return { value, ...moved };
    const counted = inCells(column, from, to);
    return { value: clamp(value, counted), ...meet(moved, widened(counted, raised(column.share))) };
  };

  // Between which places the p-quantile of the values that are there lies.
  const quantile = (column, bound, p) => {
    const at = places(column);
    let sum = 0;
    const levels = [0, ...column.counts.map((c) => (sum += c) / column.rows)];
    const aim = p * levels[levels.length - 1];
    const edges = [0, ...at, 1];
    const spend = budget(column, bound);
    let largest = 1;
    let left = spend;
    for (let i = 0; i < levels.length; i++) {
      const over = Math.max(levels[i] - aim, 0) * (edges[i + 1] - edges[i]);
      if (over > left) {
        largest = edges[i] + left / (levels[i] - aim);
        break;
      }
      left -= over;
    }
    let least = 0;
    left = spend;
    for (let i = levels.length - 1; i >= 0; i--) {
      const under = Math.max(aim - levels[i], 0) * (edges[i + 1] - edges[i]);
      if (under > left) {
        least = edges[i + 1] - left / (aim - levels[i]);
        break;
      }
      left -= under;
    }
    const here = levels.findIndex((level) => level >= aim - 1e-12 && level > 0);
    const moved = { least: Math.max(0, least), largest: Math.min(1, largest) };
    const found = meet(moved, hasShares(column) ? quantileByShares(column, p) : VACUOUS);
    return { value: clamp(here > 0 ? at[here - 1] : 0, found), ...found };
  };

  const present = (column) => (column.rows - column.absent) / column.rows;

  // Mean and variance of the values that are there, on a line of length 1.
  const moments = (column) => {
    const at = places(column);
    const rows = column.rows - column.absent;
    const mean = at.reduce((sum, x, i) => sum + x * column.counts[i], 0) / rows;
    const variance = at.reduce((sum, x, i) => sum + (x - mean) ** 2 * column.counts[i], 0) / rows;
    return { mean, variance };
  };

  // What an average inside a group can be off by, if the group is a share p of the rows. With m the average of y in
  // the group, (y − m) inside and 0 outside has an average of 0, which is off by at most `spend`; the group itself is
  // off by at most `moved`; and the average in the group is the one over the other.
  const within = (spend, p, moved = spend) => (p > moved ? Math.min(1, spend / (p - moved)) : 1);

  const alone = (column, bound) => {
    const spend = budget(column, bound);
    return column.missing ? within(spend, present(column)) : spend;
  };

  const around = (value, off, least, largest) => ({
    value,
    off,
    least: Math.max(least, value - off),
    largest: Math.min(largest, value + off),
  });

  // A range that was computed from all bounds of the certificate.
  const known = (value, [least, largest]) => ({ value, off: Math.max(value - least, largest - value), least, largest });

  const mean = (column, bound) => {
    const value = moments(column).mean;
    return column.mean ? known(value, column.mean) : around(value, alone(column, bound), 0, 1);
  };

  // (x − m)² is no steeper than twice the longer way from m to an end; that the mean is off adds a square.
  const variance = (column, bound) => {
    const { mean: m, variance: v } = moments(column);
    if (column.variance) return known(v, column.variance);
    const off = alone(column, bound);
    return around(v, Math.min(0.25, 2 * off * Math.max(m, 1 - m) + off * off), 0, 0.25);
  };

  // Of two columns without missing values: (x − m)(y − m′) is as steep as the longer ways from the means.
  const covariance = (x, y, bound, moment = 1) => {
    const [a, b] = [x, y].map((c) => moments(c).mean);
    const [mx, my] = [a, b].map((m) => Math.max(m, 1 - m));
    const [bx, by] = [budget(x, bound), budget(y, bound)];
    const off = Math.min(0.5, bx * my + by * mx + bx * by);
    return moment < 1 ? Math.min(off, covarianceByProducts(x, y, [a, b], moment)) : off;
  };

  // The mean of (x − a)(y − b) is off by at most `moment` times the range of its values, and the covariance by the
  // product of the errors of the means in addition. Values are up to `off` from the points where this is certified.
  const covarianceByProducts = (x, y, [a, b], moment) => {
    const apart = x.off + y.off;
    const range = Math.max(a * b, (1 - a) * (1 - b)) + Math.max(a * (1 - b), b * (1 - a));
    const [dx, dy] = [x, y].map((c) => mean(c, c.bound).off + 2 * c.off);
    return raised(moment) * (range + 4 * apart + 2 * (x.moved + y.moved)) + dx * dy + 3 * apart;
  };

  // The share of rows with a label, or with any group of them: `nearest` is the distance of two labels.
  const label = (column, bound, i) =>
    around(column.counts[i] / column.rows, labelled(column, bound), 0, 1);
  const labelled = (column, bound) => Math.min(1, raised(bound) / column.closest, raised(column.share ?? 1));

  // The share of rows with a label in one column and some labels in another.
  const combination = (x, y, bound, share = 1) =>
    Math.min(1, raised(bound) / Math.min(x.closest, y.closest), raised(share));

  // Inside the rows with label i of `group`: a share of a label of another column. With m that share, the share of rows
  // with both labels times 1 − m, less m times that of rows with the first only, is off by no more than either share.
  const shareWithin = (group, i, other, bound, share = 1) =>
    within(combination(group, other, bound, share), group.counts[i] / group.rows, labelled(group, bound));

  // Inside the rows with label i of `group`: the mean of a column. Where values can be missing, those are left out.
  const meanWithin = (group, i, column, bound) => {
    const spend = Math.max(raised(bound) / group.closest, budget(column, bound));
    const share = (group.counts[i] - column.absent) / group.rows;
    return { off: within(spend, share, column.missing ? spend : labelled(group, bound)) };
  };

  // Texts: four digits, never rounded inward.
  const minus = (text) => text.replace("-", "−");
  const grouped = (text) => text.replace(/^(-?\d+)/, (whole) => whole.replace(/\B(?=(\d{3})+$)/g, ","));
  const text = (x, toward) => {
    if (x === 0) return "0";
    if (!Number.isFinite(x)) return "beyond all numbers";
    if (Math.abs(x) >= 1e15 || Math.abs(x) < 1e-4) return power(x, toward);
    const digits = Math.max(0, 3 - Math.floor(Math.log10(Math.abs(x))));
    const unit = 10 ** -digits;
    let near = Number(x.toFixed(digits));
    if (toward > 0 && near < x) near += unit;
    if (toward < 0 && near > x) near -= unit;
    const shown = near.toFixed(digits);
    return minus(grouped(shown.includes(".") ? shown.replace(/\.?0+$/, "") : shown));
  };
  const power = (x, toward) => {
    const exponent = Math.floor(Math.log10(Math.abs(x)));
    let near = Number(x.toExponential(3));
    if (toward > 0 && near < x) near = x + 10 ** (exponent - 3);
    if (toward < 0 && near > x) near = x - 10 ** (exponent - 3);
    const [digits, high] = near.toExponential(3).split("e");
    return `${minus(digits)} × 10${[...String(Number(high))].map((c) => RAISED[c]).join("")}`;
  };
  const RAISED = { "-": "⁻", 0: "⁰", 1: "¹", 2: "²", 3: "³", 4: "⁴", 5: "⁵", 6: "⁶", 7: "⁷", 8: "⁸", 9: "⁹" };
  // A number as `certsynth answer` writes it, with the page's signs. Dates and labels stay as they are.
  const nice = (written) => (/^-?\d+(\.\d+)?$/.test(written) ? minus(grouped(written)) : written);
  const up = (x) => text(x, 1);
  const down = (x) => text(x, -1);
  const figure = (x) => text(x, 0);

  return {
    range, quantile, mean, variance, covariance, label, combination, shareWithin, meanWithin, moments, present,
    up, down, figure, nice, ROUNDING,
  };
})();
