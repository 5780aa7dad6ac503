"use strict";
// Predictions from the coefficients of a release: see cloakgp/release/coefficients.py.
const Cloak = (() => {
  const release = JSON.parse(document.getElementById("release").textContent);

  const array = (stored) => {
    const text = atob(stored.data);
    const bytes = new Uint8Array(text.length);
    for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
    const view = new DataView(bytes.buffer);
    const values = new Float64Array(bytes.length / 8);
    for (let i = 0; i < values.length; i++) values[i] = view.getFloat64(8 * i, true);
    return { values, rows: stored.shape[0], columns: stored.shape[1] };
  };
  for (const part of release.parts) {
    part.centres = array(part.centres);
    part.points = [];
    const { values, rows, columns } = part.centres;
    for (let i = 0; i < rows; i++) part.points.push(values.subarray(i * columns, (i + 1) * columns));
    if (part.factor) part.factor = array(part.factor);
    for (const channel of part.channels)
      for (const name of ["weights", "subtracted", "added"]) channel[name] = array(channel[name]);
  }
  const calibration = release.calibration;
  if (calibration) {
    const { values, rows, columns } = array(calibration.curves);
    calibration.grid = array(calibration.grid).values;
    calibration.curves = Array.from({ length: rows }, (_, i) => values.subarray(i * columns, (i + 1) * columns));
  }

  // Covariances, as scikit-learn and cloakgp.models.kernels define them.
  const list = (value) => (value && value.array !== undefined ? value.array : value);
  const at = (value, i) => { const own = list(value); return Array.isArray(own) ? own[own.length > 1 ? i : 0] : own; };
  const squared = (x, z, scale) => {
    let sum = 0;
    for (let i = 0; i < x.length; i++) { const d = (x[i] - z[i]) / at(scale, i); sum += d * d; }
    return sum;
  };
  const kernels = {
    Sum: (p) => { const a = kernel(p.k1), b = kernel(p.k2); return (x, z) => a(x, z) + b(x, z); },
    Product: (p) => { const a = kernel(p.k1), b = kernel(p.k2); return (x, z) => a(x, z) * b(x, z); },
    Exponentiation: (p) => { const a = kernel(p.kernel); return (x, z) => a(x, z) ** p.exponent; },
    ConstantKernel: (p) => () => p.constant_value,
    WhiteKernel: () => () => 0,
    RBF: (p) => (x, z) => Math.exp(-squared(x, z, p.length_scale) / 2),
    Matern: (p) => (x, z) => {
      const r = Math.sqrt(squared(x, z, p.length_scale));
      if (p.nu === 0.5) return Math.exp(-r);
      if (p.nu === 1.5) { const s = Math.sqrt(3) * r; return (1 + s) * Math.exp(-s); }
      const s = Math.sqrt(5) * r;
      return (1 + s + s * s / 3) * Math.exp(-s);
    },
    BlockMatern: (p) => {
      const blocks = list(p.blocks), scales = blocks.map((block) => at(p.length_scale, block));
      return (x, z) => { const s = Math.sqrt(3 * squared(x, z, scales)); return (1 + s) * Math.exp(-s); };
    },
    RationalQuadratic: (p) => (x, z) =>
      (1 + squared(x, z, 1) / (2 * p.alpha * p.length_scale ** 2)) ** -p.alpha,
    ExpSineSquared: (p) => (x, z) => {
      const s = Math.sin(Math.PI * Math.sqrt(squared(x, z, 1)) / p.periodicity) / p.length_scale;
      return Math.exp(-2 * s * s);
    },
    DotProduct: (p) => (x, z) => x.reduce((sum, value, i) => sum + value * z[i], p.sigma_0 ** 2),
    LinearKernel: (p) => (x, z) => {
      let sum = 0;
      for (let i = 0; i < x.length; i++) {
        const c = at(p.centre, i), s = at(p.scale, i);
        sum += ((x[i] - c) / s) * ((z[i] - c) / s);
      }
      return sum / x.length;
    },
  };
  const kernel = (tree) => kernels[tree.kernel](tree.parameters);
  for (const part of release.parts) part.covariance = kernel(part.kernel);

  // From choices to inputs, as cloakgp.columns encodes them.
  const encoders = {
    number: (column, values) => [values[column.controls[0]]],
    category: (column, values) => {
      const place = values[column.controls[0]];
      return Array.from({ length: column.slots }, (_, i) => (i === place ? column.corner : 0));
    },
    date: (column, values) => {
      const days = values[column.controls[0]];
      const found = column.linear ? [days] : [];
      for (const [period, start] of column.cycles) {
        const angle = 2 * Math.PI * (days - start) / period;
        found.push(Math.cos(angle), Math.sin(angle));
      }
      return found;
    },
    place: (column, values) => {
      const radians = column.controls.map((control) => values[control] * Math.PI / 180);
      const [latitude, longitude] = radians, radius = column.radius;
      if (column.sphere) {
        const across = Math.cos(latitude);
        return [across * Math.cos(longitude), across * Math.sin(longitude), Math.sin(latitude)]
          .map((part) => radius * part);
      }
      const [middle, meridian] = column.centre.map((degrees) => degrees * Math.PI / 180);
      const full = 2 * Math.PI, east = longitude - meridian + Math.PI;
      const turn = east - full * Math.floor(east / full) - Math.PI;
      return [radius * (latitude - middle), radius * Math.cos(middle) * turn];
    },
  };
  const encode = (values) => {
    const found = [];
    for (const column of release.columns) {
      found.push(...encoders[column.kind](column, values));
      if (column.filled) found.push(0);
    }
    return found;
  };

  const length = (matrix, vector) => {
    let sum = 0;
    for (let i = 0; i < matrix.rows; i++) {
      let product = 0;
      for (let j = 0, k = i * matrix.columns; j < matrix.columns; j++, k++)
        product += matrix.values[k] * vector[j];
      sum += product * product;
    }
    return sum;
  };
  const latent = (part, x) => {
    let b = Float64Array.from(part.points, (z) => part.covariance(x, z));
    if (part.factor) {
      const { values, rows } = part.factor;
      for (let i = 0; i < rows; i++) {
        let rest = b[i];
        for (let j = 0; j < i; j++) rest -= values[i * rows + j] * b[j];
        b[i] = rest / values[i * rows + i];
      }
    }
    const own = part.allExplained ? b.reduce((sum, each) => sum + each * each, 0) : part.covariance(x, x);
    const trend = part.trend ? x[part.trend.column] - part.trend.centre : 0;
    return part.channels.map((channel) => {
      let mean = channel.mean + trend;
      for (let i = 0; i < b.length; i++) mean += channel.weights.values[i] * b[i];
      return { mean, variance: Math.max(own - length(channel.subtracted, b), 0) + length(channel.added, b) };
    });
  };

  // The noise variance of a new output, which may vary with the inputs, as cloakgp.models.scatter has it.
  const noiseAt = (part, x) => {
    if (!part.scatter) return part.noise;
    const { centres, scales, weights, largest } = part.scatter;
    const log = centres.reduce((sum, centre, b) => {
      const squared = centre.reduce((rest, c, i) => rest + ((x[i] - c) / scales[i]) ** 2, 0);
      return sum + weights[b] * Math.exp(-squared / 2);
    }, 0);
    return part.noise * Math.exp(2 * Math.min(Math.max(log, -largest), largest));
  };

  // The normal distribution function, by a continued fraction in its tails (Marsaglia 2004 inside).
  const normal = (z) => {
    if (z < -38) return 0;
    if (z > 38) return 1;
    const a = Math.abs(z);
    if (a < 5) {
      let term = a, sum = a;
      for (let n = 3; Math.abs(term) > 1e-18 * sum && n < 400; n += 2) { term *= a * a / n; sum += term; }
      const inside = sum * Math.exp(-a * a / 2) / Math.sqrt(2 * Math.PI);
      return z < 0 ? 0.5 - inside : 0.5 + inside;
    }
    let fraction = a;
    for (let n = 60; n > 0; n--) fraction = a + n / fraction;
    const tail = Math.exp(-a * a / 2) / (Math.sqrt(2 * Math.PI) * fraction);
    return z < 0 ? tail : 1 - tail;
  };

  const numbers = (values) => {
    const x = encode(values);
    const found = release.parts.map((part) => ({ ...latent(part, x)[0], noise: noiseAt(part, x), weight: part.weight }));
    const mean = found.reduce((sum, each) => sum + each.weight * each.mean, 0);
    const spread = (noise) => Math.sqrt(found.reduce((sum, each) =>
      sum + each.weight * (each.variance + noise * each.noise + (each.mean - mean) ** 2), 0));
    return { mean, sd: spread(0), newSd: spread(1) };
  };
  // Of each quantile mean, sd and scale of its curve, averaged over priors, as
  // cloakgp.models.likelihoods.quantiles has them.
  const curves = (values) => {
    const x = encode(values);
    const found = release.parts.map((part) => ({ weight: part.weight, scales: part.scales, latent: latent(part, x) }));
    const averaged = (of) => found.reduce((sum, part) => sum + part.weight * of(part), 0);
    return release.quantiles.steps.map((step, k) => {
      const mean = averaged((part) => part.latent[k].mean), scale = averaged((part) => part.scales[k]);
      const variance = averaged((part) => part.latent[k].variance + (part.latent[k].mean - mean) ** 2);
      return { step, mean, scale, sd: Math.sqrt(variance), newSd: Math.sqrt(scale * scale + variance) };
    });
  };
  const sorted = (found) => found.sort((one, other) => one - other);
  // Between points in ascending order, as NumPy's interp.
  const interpolated = (x, points, heights) => {
    const last = points.length - 1;
    if (x < points[0]) return heights[0];
    if (x >= points[last]) return heights[last];
    let low = 0, high = last;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (points[middle] <= x) low = middle; else high = middle;
    }
    const slope = (heights[high] - heights[low]) / (points[high] - points[low]);
    return heights[low] + slope * (x - points[low]);
  };
  // How standardised outputs are distributed where their mean is predicted: by the counts of the
  // release, see cloakgp/release/calibration.py, or normally.
  const curve = (mean) => {
    const { middles, curves } = calibration;
    const place = interpolated(mean, middles, middles.map((_, i) => i));
    const low = Math.floor(place), share = place - low;
    return share ? curves[low].map((own, i) => (1 - share) * own + share * curves[low + 1][i]) : curves[low];
  };
  const normalQuantiles = new Map();
  const normalQuantile = (probability) => {
    if (!normalQuantiles.has(probability)) {
      let low = -38, high = 38;
      for (let i = 0; i < 100; i++) {
        const middle = (low + high) / 2;
        if (normal(middle) < probability) low = middle; else high = middle;
      }
      normalQuantiles.set(probability, (low + high) / 2);
    }
    return normalQuantiles.get(probability);
  };
  // Between quantiles that are predicted, and beyond them normally: in z, linearly.
  const betweenQuantiles = (found) => {
    const steps = found.map((each) => each.step), last = steps.length - 1;
    const heights = sorted(found.map((each) => each.mean + (each.newSd - each.scale) * each.step));
    const first = found[0].newSd, end = found[last].newSd;
    return {
      heights,
      quantile: (z) => interpolated(z, steps, heights)
        + Math.min(z - steps[0], 0) * first + Math.max(z - steps[last], 0) * end,
      step: (y) => interpolated(y, heights, steps)
        + Math.min(y - heights[0], 0) / first + Math.max(y - heights[last], 0) / end,
    };
  };
  const steps = (mean, shares) => {
    if (!calibration) return shares.map(normalQuantile);
    const below = curve(mean);
    return shares.map((share) => interpolated(share, below, calibration.grid));
  };

  // In output units: transforms are inverted, as by Release.predict_limits.
  const inverses = { log: Math.exp, logit: (z) => 1 / (1 + Math.exp(-z)) };
  const inverse = inverses[release.transform] || ((z) => z);
  const forwards = { log: Math.log, logit: (y) => Math.log(y / (1 - y)) };
  const forward = forwards[release.transform] || ((y) => y);
  const within = (value) => Math.min(Math.max(inverse(value), release.bounds[0]), release.bounds[1]);
  // Counts of events for some exposure, as cloakgp.models.likelihoods.counts has them: Poisson or
  // negative binomial, mixed over nodes of the log rate. Their shares up to a number are incomplete
  // gamma and beta functions, by continued fractions (Lentz); log Γ after Lanczos.
  const LANCZOS = [57.1562356658629235, -59.5979603554754912, 14.1360979747417471, -0.491913816097620199,
    0.339946499848118887e-4, 0.465236289270485756e-4, -0.983744753048795646e-4, 0.158088703224912494e-3,
    -0.210264441724104883e-3, 0.217439618115212643e-3, -0.164318106536763890e-3, 0.844182239838527433e-4,
    -0.261908384015814087e-4, 0.368991826595316234e-5];
  const logGamma = (x) => {
    const high = x + 5.2421875;
    const sum = LANCZOS.reduce((rest, each, i) => rest + each / (x + 1 + i), 0.999999999999997092);
    return (x + 0.5) * Math.log(high) - high + Math.log(2.5066282746310005 * sum / x);
  };
  const MOST_TERMS = 100000, PRECISION = 1e-15;
  const fraction = (first, next) => {
    const away = (value) => (Math.abs(value) < 1e-300 ? 1e-300 : value);
    let c = 1 / 1e-300, d = 1 / away(first), value = d;
    for (let i = 1; i < MOST_TERMS; i++) {
      const [above, below] = next(i);
      d = 1 / away(below + above * d);
      c = away(below + above / c);
      value *= c * d;
      if (Math.abs(c * d - 1) < PRECISION) break;
    }
    return value;
  };
  // P(y ≤ count) of a Poisson count: the upper incomplete gamma function.
  const poisson = (count, mean) => {
    const a = count + 1, scale = Math.exp(a * Math.log(mean) - mean - logGamma(a));
    if (mean < a) {
      let term = 1 / a, sum = term;
      for (let n = a + 1; term > PRECISION * sum; n++) { term *= mean / n; sum += term; }
      return 1 - scale * sum;
    }
    return scale * fraction(mean + 1 - a, (i) => [-i * (i - a), mean + 2 * i + 1 - a]);
  };
  // log Γ(a + b) − log Γ(a), after Stirling where both are too large for their difference.
  const logRise = (a, b) => (a < 1e5 ? logGamma(a + b) - logGamma(a)
    : (a - 0.5) * Math.log1p(b / a) + b * (Math.log(a + b) - 1) + (1 / (a + b) - 1 / a) / 12);
  const logOf = (share, other) => (share > 0.5 ? Math.log1p(-other) : Math.log(share));
  const beta = (x, rest, a, b) => {
    if (x > (a + 1) / (a + b + 2)) return 1 - beta(rest, x, b, a);
    const [large, small] = a > b ? [a, b] : [b, a];
    const scale = Math.exp(logRise(large, small) - logGamma(small) + a * logOf(x, rest) + b * logOf(rest, x));
    return scale / a * fraction(1, (i) => {
      const m = i >> 1, even = i % 2 === 0;
      return [(even ? m * (b - m) : -(a + m) * (a + b + m)) * x / ((a + i - 1) * (a + i)), 1];
    });
  };
  const upTo = (count, mean, own) => {
    // Poisson counts are the same but for rounding errors, and quicker.
    if (own * mean < 1e-9) return poisson(count, mean);
    const p = 1 / (1 + own * mean);
    return beta(p, own * mean * p, 1 / own, count + 1);
  };
  const counted = (values, exposure) => {
    const x = encode(values), { nodes, shares } = release.counts, found = [];
    for (const part of release.parts) {
      const [{ mean, variance }] = latent(part, x);
      nodes.forEach((node, i) => found.push({
        share: part.weight * shares[i],
        mean: exposure * Math.exp(mean + Math.sqrt(variance) * node),
        own: part.overdispersion,
      }));
    }
    return (count) => (count < 0 ? 0
      : found.reduce((sum, each) => sum + each.share * upTo(count, each.mean, each.own), 0));
  };
  const countQuantile = (below, share) => {
    let low = -1, high = 1;
    while (below(high) < share) { low = high; high *= 2; }
    while (high - low > 1) {
      const middle = Math.floor((low + high) / 2);
      if (below(middle) >= share) high = middle; else low = middle;
    }
    return high;
  };
  const predictedCounts = (values, tails, exposure) => {
    const { mean, sd } = numbers(values), below = counted(values, exposure);
    return {
      middle: Math.exp(mean),
      curve: [-1, 1].map((sign) => Math.exp(mean + sign * release.normal95 * sd)),
      person: tails.map((tail) => countQuantile(below, tail)),
    };
  };
  const predictedQuantiles = (values, tails) => {
    const found = curves(values), { heights, quantile } = betweenQuantiles(found);
    const [lower, upper] = [-1, 1].map((sign) =>
      sorted(found.map((each) => each.mean + sign * release.normal95 * each.sd)));
    const quantiles = heights.map((height, k) => ({
      middle: within(height), curve: [within(lower[k]), within(upper[k])],
    }));
    const person = tails.map((tail) => within(quantile(normalQuantile(tail))));
    return { ...quantiles[release.quantiles.middle], quantiles, person };
  };
  const predicted = (values, coverage, exposure = 1) => {
    const tails = [0.5 - coverage / 2, 0.5 + coverage / 2];
    if (release.counts) return predictedCounts(values, tails, exposure);
    if (release.quantiles) return predictedQuantiles(values, tails);
    const { mean, sd, newSd } = numbers(values);
    return {
      middle: within(mean),
      curve: [-1, 1].map((sign) => within(mean + sign * release.normal95 * sd)),
      person: steps(mean, tails).map((step) => within(mean + step * newSd)),
    };
  };
  const above = (values, threshold, exposure = 1) => {
    const [lowest, highest] = release.bounds;
    if (release.counts) return 1 - counted(values, exposure)(Math.floor(threshold));
    if (release.quantiles) {
      const asked = forward(Math.min(Math.max(threshold, lowest), highest));
      return normal(-betweenQuantiles(curves(values)).step(asked));
    }
    if (threshold < lowest) return 1;
    if (threshold >= highest) return 0;
    const { mean, newSd } = numbers(values), step = (forward(threshold) - mean) / newSd;
    if (!calibration) return normal(-step);
    const { grid } = calibration;
    if (step < grid[0]) return 1;
    return step > grid[grid.length - 1] ? 0 : 1 - interpolated(step, grid, curve(mean));
  };
  const probabilities = (values) => {
    const x = encode(values), total = release.classes.map(() => 0);
    for (const part of release.parts) {
      let shares = latent(part, x).map(({ mean, variance }) => {
        let sum = 0;
        release.link.scales.forEach((scale, i) => {
          sum += release.link.weights[i] * normal(mean / Math.sqrt(scale * scale + variance + part.noise));
        });
        return sum;
      });
      if (shares.length === 1) shares = [1 - shares[0], shares[0]];
      else { const all = shares.reduce((sum, each) => sum + each, 0); shares = shares.map((each) => each / all); }
      shares.forEach((share, i) => { total[i] += part.weight * share; });
    }
    return total;
  };
  return { release, numbers, predicted, above, probabilities, normal };
})();

// The page: choices, answers, and a picture over one input.
(() => {
  const { release } = Cloak, POINTS = 81, DAY = 86400000;
  const colours = ["#1f6f8b", "#d1772e", "#7a5195", "#58913f", "#b3261e", "#7b8794", "#0f4c5c", "#c9a227"];
  const values = release.controls.map((control) => control.typical);
  const find = (id) => document.getElementById(id);
  let over = 0, percent = release.classes ? 0 : Number(find("coverage").value), threshold = null, exposure = 1;

  const digits = (span) => Math.max(0, 2 - Math.floor(Math.log10(span || 1)));
  const number = (value, span) => value.toLocaleString("en", { maximumFractionDigits: digits(span) });
  const iso = (days, byTime) => new Date(Math.round(days * DAY)).toISOString().slice(0, byTime ? 16 : 10);
  const shown = (control, value) => {
    if (control.kind === "level") return control.levels[value];
    if (control.kind === "date") return iso(value, control.byTime).replace("T", " ");
    const text = control.whole ? String(Math.round(value)) : number(value, control.hi - control.lo);
    return control.unit ? `${text} ${control.unit}` : text;
  };
  const escaped = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
  const middle = release.counts ? "rate" : release.transform ? "median" : "average";
  // Digits of numbers go by the bounds, or by how unsure a rate or a quantile is.
  const width = ([low, high]) => high - low;
  const spanOf = (found) => (found.quantiles ? Math.min(...found.quantiles.map((each) => width(each.curve)))
    : release.counts ? width(found.curve) : width(release.bounds));
  const percents = release.quantiles ? release.quantiles.levels.map((level) => Number((100 * level).toPrecision(6))) : [];

  const tell = () => {
    if (release.classes) {
      const shares = Cloak.probabilities(values);
      const best = shares.indexOf(Math.max(...shares));
      find("prediction").textContent = release.classes[best];
      find("curve").textContent = release.classes
        .map((name, i) => `${name}: ${(100 * shares[i]).toFixed(1)} %`).join("   ");
      find("person").textContent = "";
      return;
    }
    const found = Cloak.predicted(values, percent / 100, exposure), span = spanOf(found);
    const text = (ends) => ends.map((end) => number(end, span)).join(" to ");
    find("prediction").textContent = number(found.middle, span);
    find("curve").textContent = found.quantiles
      ? found.quantiles.map((each, k) => `${percents[k]} % of such people are at most `
        + `${number(each.middle, span)}: from ${text(each.curve)}, with 95 %.`).join("\n")
      : `The ${middle} of such people lies in ${text(found.curve)}, with 95 %.`;
    find("person").textContent = `One such person lies in ${text(found.person)}, with ${percent} %.`;
    find("beyond").textContent = threshold === null ? ""
      : `One such person is above ${threshold} with ${(100 * Cloak.above(values, threshold, exposure)).toFixed(1)} %.`;
  };

  const grid = (control) => {
    if (control.kind === "level") return control.levels.map((_, i) => i);
    let step = (control.hi - control.lo) / (POINTS - 1), start = control.lo;
    // Over many weeks always the same day of the week, as of the choice.
    if (control.kind === "date" && step >= 1) {
      step = 7 * Math.ceil(step / 7);
      const offset = values[over] - control.lo;
      start += offset - step * Math.floor(offset / step);
    }
    const found = [];
    for (let value = start; value <= control.hi + 1e-9 * (control.hi - control.lo || 1); value += step) {
      found.push(value);
      if (!step) break;
    }
    return found;
  };

  const draw = () => {
    const control = release.controls[over], points = grid(control), level = control.kind === "level";
    const at = (value) => values.map((own, i) => (i === over ? value : own));
    const across = (list) => list.map((value) => level ? escaped(control.levels[value])
      : control.kind === "date" ? iso(value, true) : value);
    const xs = across(points), traces = [];
    const mark = level ? { mode: "markers", marker: { size: 11 } } : { mode: "lines" };
    if (release.classes) {
      const found = points.map((value) => Cloak.probabilities(at(value)));
      release.classes.forEach((name, i) => {
        if (release.classes.length === 2 && i === 0) return;
        const colour = colours[i % colours.length];
        traces.push({ x: xs, y: found.map((shares) => shares[i]), name: escaped(name), ...mark,
          line: { color: colour, width: 3 }, marker: { color: colour, size: 11 } });
      });
    } else {
      const found = points.map((value) => Cloak.predicted(at(value), percent / 100, exposure));
      const band = (name, ends, fillcolor) => {
        const low = ends.map((end) => end[0]), high = ends.map((end) => end[1]);
        if (level) traces.push({ type: "bar", x: xs, y: high.map((end, i) => end - low[i]), base: low,
          name, marker: { color: fillcolor }, width: 0.5, hoverinfo: "skip" });
        else traces.push({ x: [...xs, ...xs.slice().reverse()], y: [...high, ...low.slice().reverse()],
          fill: "toself", fillcolor, line: { width: 0 }, mode: "lines", name, hoverinfo: "skip" });
      };
      const line = (name, y, color) =>
        traces.push({ x: xs, y, name, ...mark, line: { color, width: 3 }, marker: { color, size: 11 } });
      band(`one person, ${percent} %`, found.map((each) => each.person), "rgba(90,169,196,.2)");
      if (release.quantiles) percents.forEach((share, k) => {
        const colour = colours[k % colours.length], own = found.map((each) => each.quantiles[k]);
        band(`${share} %, its 95 %`, own.map((each) => each.curve), `${colour}40`);
        line(`${share} %`, own.map((each) => each.middle), colour);
      });
      else {
        band(`${middle}, 95 %`, found.map((each) => each.curve), "rgba(90,169,196,.5)");
        line("prediction", found.map((each) => each.middle), "#1f6f8b");
      }
    }
    const chosen = across([values[over]])[0];
    const label = escaped(control.label) + (control.unit ? ` (${escaped(control.unit)})` : "");
    Plotly.react("picture", traces, {
      margin: { l: 60, r: 15, t: 45, b: 50 }, barmode: "overlay", hovermode: level ? "closest" : "x",
      font: { family: "system-ui, sans-serif", color: "#22303c", size: 13 },
      xaxis: { title: { text: label }, type: level ? "category" : control.kind === "date" ? "date" : "linear",
        automargin: true, zeroline: false, showgrid: false },
      yaxis: { title: { text: release.classes ? "probability" : escaped(release.output) }, automargin: true,
        type: release.quantiles && release.transform === "log" ? "log" : "linear",
        zeroline: false, gridcolor: "#e6eaed", range: release.classes ? [-0.03, 1.03] : undefined },
      legend: { orientation: "h", y: 1.02, yanchor: "bottom", x: 0, font: { size: 12 } },
      shapes: [{ type: "line", x0: chosen, x1: chosen, y0: 0, y1: 1, yref: "paper",
        line: { color: "#7b8794", width: 1.5, dash: "dot" } }],
    }, { responsive: true, displayModeBar: false });
  };

  let waiting = false;
  const update = () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => { waiting = false; tell(); draw(); });
  };
  release.controls.forEach((control, i) => {
    const input = find(`input-${i}`), said = find(`value-${i}`);
    const say = () => { if (said) said.textContent = shown(control, values[i]); };
    if (control.kind === "level") {
      control.levels.forEach((level, place) => input.add(new Option(level, place)));
      input.value = String(control.typical);
    } else if (control.kind === "date") {
      input.min = iso(control.lo, control.byTime);
      input.max = iso(control.hi, control.byTime);
      input.value = iso(control.typical, control.byTime);
    } else {
      input.min = control.lo;
      input.max = control.hi;
      input.step = control.whole ? 1 : "any";
      input.value = control.typical;
    }
    values[i] = control.kind === "date" ? Date.parse(`${input.value}Z`.replace(/^(.{10})Z/, "$1")) / DAY
      : control.typical;
    input.addEventListener("input", () => {
      const value = control.kind === "date"
        ? Date.parse(`${input.value}Z`.replace(/^(.{10})Z/, "$1")) / DAY : Number(input.value);
      if (!Number.isFinite(value)) return;
      values[i] = value;
      say();
      update();
    });
    say();
    find("over").add(new Option(control.label, i));
  });
  if (!release.classes) {
    find("coverage").addEventListener("input", (event) => { percent = Number(event.target.value); update(); });
    find("above").addEventListener("input", (event) => {
      const given = event.target.value.trim().replace(",", "."), number = Number(given);
      threshold = given && Number.isFinite(number) ? number : null;
      update();
    });
  }
  if (release.counts) {
    find("exposure").addEventListener("input", (event) => {
      const number = Number(event.target.value.trim().replace(",", "."));
      exposure = number > 0 && Number.isFinite(number) ? number : 1;
      update();
    });
  }
  find("over").addEventListener("input", (event) => { over = Number(event.target.value); update(); });
  update();
})();
