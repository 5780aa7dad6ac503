// Predictions from the coefficients of a release, the one place where JavaScript computes them: on
// pages that predict, and in the package that reads files of releases (readers/javascript).
// `release` is what cloakgp/release/coefficient_tree.py says, with arrays as {values, rows, columns}, and
// the `columns` of `columnsOf`.
const NORMAL_95 = 1.959963984540054;
const CORNER = Math.sqrt(0.5), RADIUS = 6371.0088, MONDAY = 4;
const PERIODS = { day: 1, week: 7, year: 365.2425 };

// How values become inputs, column by column: of a schema, or each input for itself. Of each, which
// of the values it takes (`places`).
export const columnsOf = (schema, inputs) => {
  if (!schema) return Array.from({ length: inputs }, (_, place) => ({ type: "number", places: [place] }));
  let place = 0;
  return schema.columns.filter((column) => column.type !== "identifier").map((column) => {
    const count = column.type === "vector" ? column.columns.length : column.type === "place" ? 2 : 1;
    place += count;
    return { ...column, places: Array.from({ length: count }, (_, i) => place - count + i) };
  });
};

// The features of a part with its arrays read, by `array`; null of a part that has none.
export const featuresOf = (features, array) => (features ? {
  ...features,
  ...Object.fromEntries(["terms", "scales", "points", "map", "variances"]
    .filter((name) => name in features).map((name) => [name, array(features[name])])),
  ...(features.axes && { axes: features.axes.map((axis) => ({ ...axis, table: array(axis.table) })) }),
} : null);

export const predictor = (release) => {
  for (const part of release.parts) if (part.centres) {
    part.points = [];
    const { values, rows, columns } = part.centres;
    for (let i = 0; i < rows; i++) part.points.push(values.subarray(i * columns, (i + 1) * columns));
  }
  const calibration = release.calibration;
  if (calibration) {
    const { values, rows, columns } = calibration.curves;
    calibration.grid = calibration.grid.values;
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
    // Of several outputs: which it is stands last among the inputs.
    CoregionKernel: (p) => {
      const among = list(p.coregion), inner = kernel(p.kernel);
      return (x, z) => {
        const last = x.length - 1;
        return inner(x.slice(0, last), z.subarray ? z.subarray(0, last) : z.slice(0, last))
          * among[Math.round(x[last])][Math.round(z[last])];
      };
    },
    LinearKernel: (p) => (x, z) => {
      let sum = 0;
      for (let i = 0; i < x.length; i++) {
        const c = at(p.centre, i), s = at(p.scale, i);
        sum += ((x[i] - c) / s) * ((z[i] - c) / s);
      }
      return sum / x.length;
    },
  };
  const SMOOTHNESSES = [0.5, 1.5, 2.5];
  const kernel = (tree) => {
    const { kernel: name, parameters } = tree;
    if (!kernels[name] || (name === "Matern" && !SMOOTHNESSES.includes(parameters.nu)))
      throw new Error(`the kernel ${name} cannot be evaluated here: predict in Python`);
    return kernels[name](parameters);
  };
  for (const part of release.parts) {
    if (part.kernel) part.covariance = kernel(part.kernel);
    if (part.noise === null)
      throw new Error("noise that varies with the inputs cannot be told here: predict in Python");
  }

  // From values to inputs, as cloakgp.columns encodes them: numbers, the place of a level, days since
  // the start of 1970, degrees. NaN is a missing value, for which something else stands in.
  const radiansOf = (degrees) => degrees * Math.PI / 180;
  const encoders = {
    category: (column, [place]) => {
      const slots = column.levels.length + (column.other ? 1 : 0) + (column.missing === "category" ? 1 : 0);
      return Array.from({ length: slots }, (_, i) => (i === place ? CORNER : 0));
    },
    date: (column, [days]) => {
      const found = column.linear ? [days] : [];
      for (const cycle of column.cycles) {
        const angle = 2 * Math.PI * (days - MONDAY) / PERIODS[cycle];
        found.push(Math.cos(angle), Math.sin(angle));
      }
      return found;
    },
    place: (column, degrees) => {
      const [latitude, longitude] = degrees.map(radiansOf);
      if (column.projection === "sphere") {
        const across = Math.cos(latitude);
        return [across * Math.cos(longitude), across * Math.sin(longitude), Math.sin(latitude)]
          .map((part) => RADIUS * part);
      }
      const [middle, meridian] = column.centre.map(radiansOf);
      const full = 2 * Math.PI, east = longitude - meridian + Math.PI;
      const turn = east - full * Math.floor(east / full) - Math.PI;
      return [RADIUS * (latitude - middle), RADIUS * Math.cos(middle) * turn];
    },
    vector: (column, values) => (column.axes.length === 0 ? values
      : column.axes.map((axis) => axis.reduce((sum, entry, i) => sum + entry * (values[i] - column.centre[i]), 0))),
  };
  // Numbers, ranks and truth values stand for themselves.
  for (const kind of ["number", "ordered category", "boolean"]) encoders[kind] = (column, values) => values;
  const fillings = { boolean: () => [0.5], place: (column) => column.centre,
    vector: (column) => column.centre };
  const filling = (column) => (fillings[column.type] || (() => [column.fill]))(column);
  for (const column of release.columns)
    if (!encoders[column.type]) throw new Error(`a column of the kind ${column.type} cannot be read here`);
  const encode = (values) => {
    // Such arrays are of inputs already.
    if (values instanceof Float64Array) return Array.from(values);
    const found = [];
    for (const column of release.columns) {
      const own = column.places.map((place) => values[place]), gap = own.some(Number.isNaN);
      found.push(...encoders[column.type](column, gap ? filling(column) : own));
      if (column.missing === "impute") found.push(gap ? 1 : 0);
    }
    // Inputs that no column gives, as public predictions by a model, are to be given in figures.
    if (found.length !== release.inputs)
      throw new Error(`these columns give ${found.length} inputs, and it takes ${release.inputs}`);
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
  // What the answers of each measurement ask of the latent function, in the place of b.
  const asked = (blocks, b) => blocks.flatMap(({ start, matrix, scale }) => {
    const found = new Float64Array(matrix.rows);
    for (let i = 0; i < matrix.rows; i++)
      for (let j = 0, k = i * matrix.columns; j < matrix.columns; j++, k++)
        found[i] += matrix.values[k] * scale.values[j] * b[start + j];
    return Array.from(found);
  });
  // Of whole rows: functions along axes as cloakgp.models.axes has them, a kernel's eigenfunctions on
  // a box, or bins of it. Inputs lie within the box; what features leave out is `left`.
  const frequencies = (t, turn, count, waves) => Array.from({ length: count }, (_, k) =>
    waves.map((wave) => Math.SQRT2 * wave(turn * Math.PI * (k + 1) * t))).flat();
  const axes = {
    line: ({ columns: [column], table }, x, { lo, hi }) =>
      frequencies(below((x[column] - lo[column]) / (hi[column] - lo[column]), table), 1, 6, [Math.cos]),
    circle: ({ columns: [cosine, sine], table }, x) => {
      const turn = Math.atan2(x[sine], x[cosine]) / (2 * Math.PI);
      return frequencies(below(turn - Math.floor(turn), table), 2, 3, [Math.cos, Math.sin]);
    },
    levels: ({ columns, table }, x) => {
      const own = columns.map((column) => x[column]);
      const level = own.length === 1 ? Number(own[0] > 0.5) : own.indexOf(Math.max(...own));
      return Array.from(table.values.subarray(level * table.columns, (level + 1) * table.columns));
    },
  };
  const below = (place, { values, rows }) => {
    const within = place * rows, bin = Math.min(Math.floor(within), rows - 1);
    return values[2 * bin] + (within - bin) * values[2 * bin + 1];
  };
  const shortened = (features) => {
    const length = Math.max(1, Math.hypot(...features));
    return features.map((each) => each / length);
  };
  const bases = {
    cosines: (basis) => (x) => {
      const functions = basis.axes.map((axis) => [1, ...axes[axis.type](axis, x, basis)]);
      const { values } = basis.terms;
      const features = Array.from(basis.scales.values, (scale, j) => {
        const [one, other, first, second] = values.subarray(4 * j, 4 * j + 4);
        return functions[one][first] * functions[other][second] * scale;
      });
      return { b: shortened(features), left: basis.left_out };
    },
    eigenfunctions: (basis) => {
      const covariance = kernel(basis.kernel), { rows, columns } = basis.points;
      const points = Array.from({ length: rows }, (_, i) => basis.points.values.subarray(i * columns, (i + 1) * columns));
      const count = basis.map.columns;
      return (x) => {
        const near = points.map((z) => covariance(x, z));
        const b = shortened(Array.from({ length: count }, (_, j) =>
          near.reduce((sum, each, i) => sum + each * basis.map.values[i * count + j], 0)));
        const explained = b.reduce((sum, each, j) => sum + each * each * basis.variances.values[j], 0);
        return { b, left: Math.max(covariance(x, x) - explained, 0) };
      };
    },
    bins: (basis) => {
      const covariance = kernel(basis.kernel), { lo, hi, bins } = basis;
      const count = bins.reduce((product, each) => product * each, 1);
      return (x) => {
        const places = x.map((value, i) => Math.min(Math.floor((value - lo[i]) / (hi[i] - lo[i]) * bins[i]), bins[i] - 1));
        const middle = places.map((place, i) => lo[i] + (place + 0.5) / bins[i] * (hi[i] - lo[i]));
        const b = new Array(count).fill(0), whole = covariance(middle, middle);
        b[places.reduce((index, place, i) => index * bins[i] + place, 0)] = 1;
        const explained = whole > 0 ? covariance(x, middle) ** 2 / whole : 0;
        return { b, left: Math.max(covariance(x, x) - explained, 0) };
      };
    },
  };
  for (const part of release.parts) if (part.features) {
    if (!bases[part.features.type]) throw new Error(`features of the kind ${part.features.type} cannot be evaluated here`);
    const basis = part.features, evaluate = bases[basis.type](basis);
    part.evaluate = (x) => evaluate(x.map((value, i) => Math.min(Math.max(value, basis.lo[i]), basis.hi[i])));
  }
  const latent = (part, x) => {
    if (part.evaluate) {
      const { b, left } = part.evaluate(x);
      return part.channels.map(({ mean, weights, added }) => ({
        mean: b.reduce((sum, each, i) => sum + each * weights.values[i], mean), variance: left + length(added, b) }));
    }
    let b = Float64Array.from(part.points, (z) => part.covariance(x, z));
    if (part.factor) {
      const { values, rows } = part.factor;
      for (let i = 0; i < rows; i++) {
        let rest = b[i];
        for (let j = 0; j < i; j++) rest -= values[i * rows + j] * b[j];
        b[i] = rest / values[i * rows + i];
      }
    }
    const own = part.all_explained ? b.reduce((sum, each) => sum + each * each, 0) : part.covariance(x, x);
    const trend = part.trend ? x[part.trend.column] - part.trend.centre : 0;
    return part.channels.map((channel, place) => {
      const by = part.questions ? asked(part.questions[place], b) : b;
      let mean = channel.mean + trend;
      for (let i = 0; i < by.length; i++) mean += channel.weights.values[i] * by[i];
      return { mean, variance: Math.max(own - length(channel.subtracted, by), 0) + length(channel.added, by) };
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

  const numbersAt = (x) => {
    const found = release.parts.map((part) => ({ ...latent(part, x)[0], noise: noiseAt(part, x), weight: part.weight }));
    const mean = found.reduce((sum, each) => sum + each.weight * each.mean, 0);
    const spread = (noise) => Math.sqrt(found.reduce((sum, each) =>
      sum + each.weight * (each.variance + noise * each.noise + (each.mean - mean) ** 2), 0));
    return { mean, sd: spread(0), newSd: spread(1) };
  };
  const numbers = (values) => numbersAt(encode(values));
  // Of several outputs: each is an entry of its own, in widths from the middle of its interval.
  const several = (values) => {
    const x = encode(values);
    return release.several.map(({ name, middle, width }, which) => {
      const { mean, sd, newSd } = numbersAt([...x, which]);
      return { name, mean: middle + width * mean, sd: width * sd, newSd: width * newSd };
    });
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
  const quantileOf = (below, probability) => {
    let low = -38, high = 38;
    while (below(low) > probability) low *= 2;
    while (below(high) < probability) high *= 2;
    for (let i = 0; i < 100; i++) {
      const middle = (low + high) / 2;
      if (below(middle) < probability) low = middle; else high = middle;
    }
    return (low + high) / 2;
  };
  const normalQuantiles = new Map();
  const normalQuantile = (probability) => {
    if (!normalQuantiles.has(probability)) {
      normalQuantiles.set(probability, quantileOf(normal, probability));
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
  // Where no answer tells the noise of new outputs: a mixture of normal laws, see
  // cloakgp/release/unknown_noise.py. How much of it lies below so many sds.
  const unknown = release.unknown_noise;
  const mixed = (sd, newSd) => {
    const own = 1 - (sd / newSd) ** 2;
    const scales = unknown.multiples.map((multiple) => Math.sqrt(1 + own * (multiple - 1)));
    return (step) => unknown.shares.reduce((sum, share, i) => sum + share * normal(step / scales[i]), 0);
  };
  const steps = ({ mean, sd, newSd }, shares) => {
    if (unknown) return shares.map((share) => quantileOf(mixed(sd, newSd), share));
    if (!calibration) return shares.map(normalQuantile);
    const below = curve(mean);
    return shares.map((share) => interpolated(share, below, calibration.grid));
  };

  // In output units: transforms are inverted, as by Release.predict_limits.
  const inverses = { log: Math.exp, logit: (z) => 1 / (1 + Math.exp(-z)) };
  if (release.transform && !release.counts && !inverses[release.transform])
    throw new Error(`outputs were transformed by ${release.transform}, which cannot be taken back here`);
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
  // Larger means are of counts that scatter, in proportion, as those of the largest that is counted;
  // of these none is anywhere near the number without end.
  const MOST_COUNTED = 1e8, LARGEST_MEAN = 1e300, WITHOUT_END = 1e20;
  const upTo = (given, expected, own) => {
    const mean = Math.min(expected, MOST_COUNTED);
    const count = Math.floor(given * (MOST_COUNTED / Math.max(expected, MOST_COUNTED)));
    if (count > WITHOUT_END) return 1;
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
        mean: Math.min(exposure * Math.exp(mean + Math.sqrt(variance) * node), LARGEST_MEAN),
        own: part.overdispersion,
      }));
    }
    return (count) => (count < 0 ? 0
      : found.reduce((sum, each) => sum + each.share * upTo(count, each.mean, each.own), 0));
  };
  const countQuantile = (below, share) => {
    // Shares add up to 1 but for a rounding error, and this one may be closer to it.
    const most = Math.min(share, below(Infinity));
    let low = -1, high = 1;
    while (below(high) < most) { low = high; high *= 2; }
    // Large numbers have gaps.
    for (;;) {
      const middle = Math.floor((low + high) / 2);
      if (!(low < middle && middle < high)) return high;
      if (below(middle) >= most) high = middle; else low = middle;
    }
  };
  // A quantile of the rate: its logarithm is a mixture of normal laws, one of each part.
  const rateQuantile = (found, share) => Math.exp(quantileOf((log) => found.reduce((sum, { weight, mean, sd }) =>
    sum + weight * normal((log - mean) / Math.max(sd, Number.MIN_VALUE)), 0), share));
  const predictedCounts = (values, tails, exposure) => {
    const x = encode(values), below = counted(values, exposure);
    const found = release.parts.map((part) => {
      const [{ mean, variance }] = latent(part, x);
      return { weight: part.weight, mean, sd: Math.sqrt(variance) };
    });
    return {
      middle: rateQuantile(found, 0.5),
      curve: [0.025, 0.975].map((share) => rateQuantile(found, share)),
      person: tails.map((tail) => countQuantile(below, tail)),
    };
  };
  const predictedQuantiles = (values, tails) => {
    const found = curves(values), { heights, quantile } = betweenQuantiles(found);
    const [lower, upper] = [-1, 1].map((sign) =>
      sorted(found.map((each) => each.mean + sign * NORMAL_95 * each.sd)));
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
      curve: [-1, 1].map((sign) => within(mean + sign * NORMAL_95 * sd)),
      // Margins of rows that were kept out are not told here.
      person: release.margins ? null : steps({ mean, sd, newSd }, tails).map((step) => within(mean + step * newSd)),
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
    const { mean, sd, newSd } = numbers(values), step = (forward(threshold) - mean) / newSd;
    if (unknown) return mixed(sd, newSd)(-step);
    if (!calibration) return normal(-step);
    const { grid } = calibration;
    if (step < grid[0]) return 1;
    return step > grid[grid.length - 1] ? 0 : 1 - interpolated(step, grid, curve(mean));
  };
  // The nearest, in sum of squares, of at least `least` that add up to 1: what the largest have above
  // the rest is taken off them.
  const nearest = (shares, least) => {
    const falling = shares.map((share) => share - least).sort((one, other) => other - one);
    let sum = least * shares.length - 1, taken = 0;
    falling.forEach((share, i) => {
      sum += share;
      if (share > sum / (i + 1)) taken = sum / (i + 1);
    });
    return shares.map((share) => Math.max(share - least - taken, 0) + least);
  };
  const probabilities = (values) => {
    const x = encode(values), total = release.classes.map(() => 0);
    if (release.least) return nearest(latent(release.parts[0], x).map(({ mean }) => mean), release.least);
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
  return { release, numbers, several, predicted, above, probabilities, normal };
};

