# Predictions from a release file of cloakgp, in R: one file, with base R and jsonlite alone.
#
#   source("cloakgp.R")
#   release <- read_release("height.cloak")
#   predict(release, data.frame(age = c(20, 40), sex = c("f", "m")))
#   predict_interval(release, data.frame(age = 20, sex = "f"), coverage = 0.9)
#   probability_above(release, data.frame(age = 20, sex = "f"), threshold = 160)
#
# Cells are read as Python reads them: dates as text after ISO 8601 or in the form that the release
# states, if that is of digits alone, or as Date, POSIXct and POSIXlt. Times that name no zone are
# what a clock shows, as print() shows them: as.POSIXct("2026-11-02") is that day wherever R runs.
# Times that name one (tz = "Europe/Berlin") are moments, read in UTC; strptime() names one where TZ
# is set, so give it tz = "UTC". What cannot be told here is refused by name. The file is described in docs/file-format.md. Its SHA-256 digests are compared
# where R has them (4.5 and later), or the package digest; `checked` of a release says whether they
# were. They find damage, and are no signature.

# ---- The archive ----

.cloak_refuse <- function(...) stop("this is no release file that can be read here: ", ..., call. = FALSE)

.cloak_sha256 <- function(path) {
  if (exists("sha256sum", envir = asNamespace("tools"), inherits = FALSE))
    return(unname(get("sha256sum", envir = asNamespace("tools"))(path)))
  if (requireNamespace("digest", quietly = TRUE)) return(digest::digest(path, algo = "sha256", file = TRUE))
  NULL
}

.cloak_array <- function(path) {
  content <- readBin(path, "raw", file.size(path))
  magic <- as.raw(c(0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59, 1, 0))
  if (length(content) < 10 || !identical(content[1:8], magic)) .cloak_refuse("an array is written in another way")
  start <- 10 + as.integer(content[9]) + 256L * as.integer(content[10])
  header <- rawToChar(content[11:start])
  pattern <- "^\\{'descr': '<f8', 'fortran_order': False, 'shape': \\(([0-9, ]*)\\), \\} *\n$"
  if (!grepl(pattern, header)) .cloak_refuse("an array is written in another way")
  parts <- trimws(strsplit(sub(pattern, "\\1", header), ",")[[1]])
  shape <- as.numeric(parts[nzchar(parts)])
  size <- prod(shape)
  if (length(content) - start != 8 * size) .cloak_refuse("an array has another size than it says")
  values <- readBin(content[-seq_len(start)], "double", size, size = 8, endian = "little")
  if (!all(is.finite(values))) .cloak_refuse("an array is not of finite numbers")
  if (length(shape) == 2) matrix(values, shape[1], shape[2], byrow = TRUE) else values
}

.cloak_open <- function(path) {
  if (!file.exists(path)) stop("there is no file ", path, call. = FALSE)
  listed <- tryCatch(utils::unzip(path, list = TRUE), error = function(e) NULL, warning = function(w) NULL)
  if (is.null(listed)) .cloak_refuse("it is no ZIP file, or was cut off")
  if (anyDuplicated(listed$Name) || !all(grepl("^(array_[0-9]+\\.npy|manifest\\.(json|sha256))$", listed$Name)))
    .cloak_refuse("it has members that no release has")
  if (sum(listed$Length) > 2^28) .cloak_refuse("it would unpack to more than 256 MiB")
  folder <- tempfile("cloak")
  on.exit(unlink(folder, recursive = TRUE))
  utils::unzip(path, exdir = folder)
  at <- function(name) file.path(folder, name)
  if (!all(file.exists(at(c("manifest.json", "manifest.sha256", listed$Name))))) .cloak_refuse("it has no manifest")
  text <- rawToChar(readBin(at("manifest.json"), "raw", file.size(at("manifest.json"))))
  # Python writes infinite bounds of hyperparameters, which JSON has not.
  if (grepl("Infinity|NaN", text))
    text <- gsub("\"(?:[^\"\\\\]|\\\\.)*+\"(*SKIP)(*FAIL)|-?Infinity|NaN", "null", text, perl = TRUE)
  manifest <- jsonlite::fromJSON(text, simplifyVector = FALSE)
  if (!identical(manifest$format, "cloakgp release")) .cloak_refuse("its manifest is of something else")
  if (!identical(as.numeric(manifest$version), 1))
    .cloak_refuse("it has format version ", manifest$version, ", and this reads version 1")
  names <- names(manifest$sha256)
  edited <- "it was changed after it was written: get it again from its publisher"
  if (!setequal(listed$Name, c(names, "manifest.json", "manifest.sha256"))) .cloak_refuse(edited)
  stated <- c(readLines(at("manifest.sha256"), warn = FALSE), unlist(manifest$sha256))
  found <- lapply(at(c("manifest.json", names)), .cloak_sha256)
  checked <- !any(vapply(found, is.null, logical(1)))
  if (checked && !identical(unname(stated), unlist(found))) .cloak_refuse(edited)
  arrays <- lapply(stats::setNames(names, names), function(name) .cloak_array(at(name)))
  list(manifest = manifest, arrays = arrays, checked = checked)
}

# ---- Covariances, as scikit-learn and cloakgp.models.kernels define them ----

.cloak_numbers <- function(value) {
  if (is.list(value) && !is.null(value$array)) unlist(value$array) else unlist(value)
}
.cloak_matrix <- function(rows) do.call(rbind, lapply(rows, unlist))
.cloak_scaled <- function(X, scale) {
  sweep(X, 2, rep(scale, length.out = ncol(X)), "/")
}
.cloak_squared <- function(X, Z) {
  found <- matrix(0, nrow(X), nrow(Z))
  for (d in seq_len(ncol(X))) found <- found + outer(X[, d], Z[, d], "-")^2
  found
}
.cloak_matern <- function(r, nu) {
  if (nu == 0.5) return(exp(-r))
  s <- if (nu == 1.5) sqrt(3) * r else sqrt(5) * r
  if (nu == 1.5) (1 + s) * exp(-s) else (1 + s + s * s / 3) * exp(-s)
}

.cloak_kernel <- function(tree) {
  name <- tree$kernel
  p <- tree$parameters
  distances <- function(X, Z, scale) .cloak_squared(.cloak_scaled(X, scale), .cloak_scaled(Z, scale))
  constant <- function(value) function(X, Z) matrix(value, nrow(X), nrow(Z))
  if (name == "Matern" && !(p$nu %in% c(0.5, 1.5, 2.5))) name <- "Matern of this smoothness"
  switch(name,
    Sum = { a <- .cloak_kernel(p$k1); b <- .cloak_kernel(p$k2); function(X, Z) a(X, Z) + b(X, Z) },
    Product = { a <- .cloak_kernel(p$k1); b <- .cloak_kernel(p$k2); function(X, Z) a(X, Z) * b(X, Z) },
    Exponentiation = { a <- .cloak_kernel(p$kernel); function(X, Z) a(X, Z)^p$exponent },
    ConstantKernel = constant(p$constant_value),
    WhiteKernel = constant(0),
    RBF = { l <- .cloak_numbers(p$length_scale); function(X, Z) exp(-distances(X, Z, l) / 2) },
    Matern = {
      l <- .cloak_numbers(p$length_scale)
      function(X, Z) .cloak_matern(sqrt(distances(X, Z, l)), p$nu)
    },
    BlockMatern = {
      own <- .cloak_numbers(p$length_scale)
      blocks <- .cloak_numbers(p$blocks) + 1
      l <- if (length(own) > 1) own[blocks] else own
      function(X, Z) .cloak_matern(sqrt(distances(X, Z, l)), 1.5)
    },
    RationalQuadratic = function(X, Z)
      (1 + .cloak_squared(X, Z) / (2 * p$alpha * p$length_scale^2))^(-p$alpha),
    ExpSineSquared = function(X, Z)
      exp(-2 * (sin(pi * sqrt(.cloak_squared(X, Z)) / p$periodicity) / p$length_scale)^2),
    DotProduct = function(X, Z) p$sigma_0^2 + X %*% t(Z),
    LinearKernel = {
      centre <- .cloak_numbers(p$centre)
      scale <- .cloak_numbers(p$scale)
      moved <- function(X) .cloak_scaled(sweep(X, 2, rep(centre, length.out = ncol(X))), scale)
      function(X, Z) moved(X) %*% t(moved(Z)) / ncol(X)
    },
    # Of several outputs: which it is stands last among the inputs.
    CoregionKernel = {
      among <- .cloak_matrix(p$coregion$array)
      inner <- .cloak_kernel(p$kernel)
      function(X, Z) {
        last <- ncol(X)
        inner(X[, -last, drop = FALSE], Z[, -last, drop = FALSE]) *
          among[round(X[, last]) + 1, round(Z[, last]) + 1, drop = FALSE]
      }
    },
    stop("the kernel ", tree$kernel, " cannot be evaluated here: predict in Python", call. = FALSE)
  )
}

# ---- Latent functions: see cloakgp/release/coefficients.py ----

# All that there is among the coefficients: what is not here has a meaning that this reader would miss.
.cloak_known <- c("outputs", "inputs", "insecure", "bounds", "transform", "classes", "link", "least", "quantiles", "counts",
  "calibration", "unknown_noise", "margins", "parts", "several")
.cloak_known_of_parts <- c("weight", "features", "kernel", "centres", "factor", "all_explained", "noise", "scatter", "trend", "scales",
  "overdispersion", "questions", "channels")
.cloak_check_known <- function(tree, known) {
  strange <- setdiff(names(tree)[!vapply(tree, is.null, logical(1))], known)
  if (length(strange))
    stop("it predicts by ", paste(strange, collapse = ", "), ", which this reader does not know: predict in Python",
      call. = FALSE)
}

.cloak_part <- function(part, arrays) {
  .cloak_check_known(part, .cloak_known_of_parts)
  if (is.null(part$noise))
    stop("noise that varies with the inputs cannot be told here: predict in Python", call. = FALSE)
  if (!is.null(part$features)) part$features <- .cloak_features(part$features, arrays)
  if (!is.null(part$kernel)) part$kernel <- .cloak_kernel(part$kernel)
  if (!is.null(part$centres)) part$centres <- arrays[[part$centres]]
  if (!is.null(part$factor)) part$factor <- arrays[[part$factor]]
  part$questions <- lapply(part$questions, lapply, function(block) {
    for (name in c("matrix", "scale")) block[[name]] <- arrays[[block[[name]]]]
    block
  })
  part$channels <- lapply(part$channels, function(channel) {
    for (name in c("weights", "subtracted", "added")) channel[[name]] <- arrays[[channel[[name]]]]
    channel
  })
  part
}

# ---- Features of whole rows: see cloakgp/models/axes.py, cosines.py and features.py ----

# The share of rows below places in [0, 1], given shares below bins and in them.
.cloak_below <- function(places, table) {
  within <- places * nrow(table)
  bin <- pmin(floor(within), nrow(table) - 1)
  table[bin + 1, 1] + (within - bin) * table[bin + 1, 2]
}
.cloak_axis <- function(axis, X, lo, hi) {
  columns <- unlist(axis$columns) + 1
  if (axis$type == "line") {
    t <- .cloak_below((X[, columns] - lo[columns]) / (hi[columns] - lo[columns]), axis$table)
    return(sqrt(2) * cos(pi * outer(t, 1:6)))
  }
  if (axis$type == "circle") {
    turn <- atan2(X[, columns[2]], X[, columns[1]]) / (2 * pi)
    angles <- 2 * pi * outer(.cloak_below(turn - floor(turn), axis$table), 1:3)
    waves <- sqrt(2) * cbind(cos(angles), sin(angles))
    return(waves[, c(1, 4, 2, 5, 3, 6), drop = FALSE])
  }
  if (axis$type != "levels") stop("an axis of the kind ", axis$type, " cannot be evaluated here", call. = FALSE)
  level <- if (length(columns) == 1) 1 + (X[, columns] > 0.5) else max.col(X[, columns, drop = FALSE], "first")
  axis$table[level, , drop = FALSE]
}
.cloak_shortened <- function(features) features / pmax(1, sqrt(rowSums(features^2)))

# Features at the rows of X, a row for each, and the variance that they leave out there.
.cloak_features <- function(basis, arrays) {
  for (name in intersect(names(basis), c("terms", "scales", "points", "map", "variances")))
    basis[[name]] <- arrays[[basis[[name]]]]
  basis$axes <- lapply(basis$axes, function(axis) { axis$table <- as.matrix(arrays[[axis$table]]); axis })
  lo <- unlist(basis$lo)
  hi <- unlist(basis$hi)
  covariance <- if (is.null(basis$kernel)) NULL else .cloak_kernel(basis$kernel)
  alone <- function(X) vapply(seq_len(nrow(X)), function(i) covariance(X[i, , drop = FALSE], X[i, , drop = FALSE])[1, 1],
    numeric(1))
  evaluate <- switch(basis$type,
    cosines = function(X) {
      tables <- lapply(basis$axes, function(axis) .cloak_axis(axis, X, lo, hi))
      column <- function(axis, place) if (place == 0) rep(1, nrow(X)) else tables[[axis + 1]][, place]
      each <- vapply(seq_len(nrow(basis$terms)), function(j) {
        term <- basis$terms[j, ]
        column(term[1], term[3]) * column(term[2], term[4]) * basis$scales[j]
      }, numeric(nrow(X)))
      list(b = .cloak_shortened(matrix(each, nrow(X))), left = rep(basis$left_out, nrow(X)))
    },
    eigenfunctions = function(X) {
      b <- .cloak_shortened(covariance(X, basis$points) %*% basis$map)
      list(b = b, left = pmax(alone(X) - as.vector(b^2 %*% as.vector(basis$variances)), 0))
    },
    bins = function(X) {
      bins <- unlist(basis$bins)
      places <- vapply(seq_along(bins), function(d)
        pmin(floor((X[, d] - lo[d]) / (hi[d] - lo[d]) * bins[d]), bins[d] - 1), numeric(nrow(X)))
      places <- matrix(places, nrow(X))
      index <- rep(0, nrow(X))
      for (d in seq_along(bins)) index <- index * bins[d] + places[, d]
      middles <- vapply(seq_along(bins), function(d) lo[d] + (places[, d] + 0.5) / bins[d] * (hi[d] - lo[d]), numeric(nrow(X)))
      middles <- matrix(middles, nrow(X))
      whole <- alone(middles)
      crossed <- vapply(seq_len(nrow(X)), function(i) covariance(X[i, , drop = FALSE], middles[i, , drop = FALSE])[1, 1], numeric(1))
      b <- outer(index, seq_len(prod(bins)) - 1, "==") + 0
      list(b = b, left = pmax(alone(X) - ifelse(whole > 0, crossed^2 / whole, 0), 0))
    },
    stop("features of the kind ", basis$type, " cannot be evaluated here", call. = FALSE)
  )
  function(X) evaluate(matrix(pmin(pmax(t(X), lo), hi), nrow(X), byrow = TRUE))
}

# What the answers of each measurement ask of a latent function, in the place of b.
.cloak_asked <- function(blocks, b) {
  do.call(rbind, lapply(blocks, function(block)
    block$matrix %*% (block$scale * b[block$start + seq_along(block$scale), , drop = FALSE])))
}

# Means and variances of each latent function at the rows of X, matrices of a column for each.
.cloak_latent <- function(part, X) {
  if (!is.null(part$features)) {
    found <- part$features(X)
    each <- function(told) matrix(vapply(part$channels, told, numeric(nrow(X))), nrow(X))
    return(list(
      mean = each(function(channel) channel$mean + as.vector(found$b %*% as.vector(channel$weights))),
      variance = each(function(channel)
        found$left + if (nrow(channel$added) == 0) 0 else rowSums((found$b %*% t(channel$added))^2))
    ))
  }
  none <- nrow(part$centres) == 0
  b <- if (none) matrix(0, 0, nrow(X)) else t(part$kernel(X, part$centres))
  if (!is.null(part$factor)) b <- forwardsolve(part$factor, b)
  alone <- function(i) part$kernel(X[i, , drop = FALSE], X[i, , drop = FALSE])[1, 1]
  own <- if (part$all_explained) colSums(b^2) else vapply(seq_len(nrow(X)), alone, numeric(1))
  by <- lapply(seq_along(part$channels), function(i)
    if (length(part$questions)) .cloak_asked(part$questions[[i]], b) else b)
  lengths <- function(root, b) if (none || nrow(root) == 0) 0 else colSums((root %*% b)^2)
  trend <- if (is.null(part$trend)) 0 else X[, part$trend$column + 1] - part$trend$centre
  mean <- vapply(seq_along(by), function(i)
    trend + part$channels[[i]]$mean + if (none) numeric(nrow(X)) else as.vector(part$channels[[i]]$weights %*% by[[i]]),
    numeric(nrow(X)))
  variance <- vapply(seq_along(by), function(i)
    pmax(own - lengths(part$channels[[i]]$subtracted, by[[i]]), 0) + lengths(part$channels[[i]]$added, by[[i]]),
    numeric(nrow(X)))
  list(mean = matrix(mean, nrow(X)), variance = matrix(variance, nrow(X)))
}

.cloak_noise <- function(part, X) {
  if (is.null(part$scatter)) return(rep(part$noise, nrow(X)))
  scales <- unlist(part$scatter$scales)
  bumps <- exp(-.cloak_squared(.cloak_scaled(X, scales),
    .cloak_scaled(.cloak_matrix(part$scatter$centres), scales)) / 2)
  log <- as.vector(bumps %*% unlist(part$scatter$weights))
  part$noise * exp(2 * pmin(pmax(log, -part$scatter$largest), part$scatter$largest))
}

# Mean, sd, and sd of a new output, averaged over priors.
.cloak_moments <- function(release, X) {
  weights <- vapply(release$parts, function(part) part$weight, numeric(1))
  found <- lapply(release$parts, function(part) .cloak_latent(part, X))
  averaged <- function(values) Reduce(`+`, Map(`*`, weights, values))
  means <- lapply(found, function(each) each$mean[, 1])
  mean <- averaged(means)
  variances <- lapply(found, function(each) each$variance[, 1])
  apart <- averaged(Map(function(variance, own) variance + (own - mean)^2, variances, means))
  noise <- averaged(lapply(release$parts, function(part) .cloak_noise(part, X)))
  list(mean = mean, sd = sqrt(apart), new_sd = sqrt(apart + noise))
}

.cloak_curves <- function(release, X) {
  weights <- vapply(release$parts, function(part) part$weight, numeric(1))
  found <- lapply(release$parts, function(part) .cloak_latent(part, X))
  averaged <- function(values) Reduce(`+`, Map(`*`, weights, values))
  mean <- averaged(lapply(found, function(each) each$mean))
  variance <- averaged(lapply(found, function(each) each$variance + (each$mean - mean)^2))
  scale <- averaged(lapply(release$parts, function(part) unlist(part$scales)))
  scale <- matrix(scale, nrow(X), length(scale), byrow = TRUE)
  list(mean = mean, scale = scale, sd = sqrt(variance), new_sd = sqrt(scale^2 + variance))
}

# ---- Outputs ----

.cloak_inverse <- function(release) {
  name <- if (is.null(release$transform) || release$outputs == "counts") "none" else release$transform
  back <- switch(name, none = identity, log = exp, logit = stats::plogis,
    stop("outputs were transformed by ", name, ", which cannot be taken back here", call. = FALSE))
  bounds <- unlist(release$bounds)
  function(values) pmin(pmax(back(values), bounds[1]), bounds[2])
}
.cloak_forward <- function(release, value) {
  switch(if (is.null(release$transform)) "none" else release$transform, none = value, log = log(value),
    logit = stats::qlogis(value))
}

# The distribution function of standardised outputs where their mean is predicted, on the grid.
.cloak_curve <- function(calibration, mean) {
  middles <- unlist(calibration$middles)
  place <- if (length(middles) > 1)
    stats::approx(middles, seq_along(middles), mean, rule = 2)$y else 1
  low <- floor(place)
  share <- place - low
  if (share == 0) return(calibration$curves[low, ])
  (1 - share) * calibration$curves[low, ] + share * calibration$curves[low + 1, ]
}
# As NumPy's interp: of equal points, the last.
.cloak_between <- function(x, points, heights) {
  i <- findInterval(x, points)
  last <- length(points)
  if (i == 0) return(heights[1])
  if (i >= last) return(heights[last])
  heights[i] + (heights[i + 1] - heights[i]) / (points[i + 1] - points[i]) * (x - points[i])
}

# Where between quantiles a new output lies, and beyond them normally: in z, linearly.
.cloak_beyond <- function(release, curves, row) {
  steps <- unlist(release$quantiles$steps)
  heights <- sort(curves$mean[row, ] + (curves$new_sd[row, ] - curves$scale[row, ]) * steps)
  sds <- curves$new_sd[row, c(1, length(steps))]
  ends <- function(x, points) c(min(x - points[1], 0), max(x - points[length(points)], 0))
  list(
    heights = heights,
    quantile = function(z) .cloak_between(z, steps, heights) + sum(ends(z, steps) * sds),
    step = function(y) .cloak_between(y, heights, steps) + sum(ends(y, heights) / sds)
  )
}

# The distribution function of new counts at one row. Larger means are of counts that scatter, in
# proportion, as those of the largest that is counted.
.cloak_most_counted <- 1e8
.cloak_largest_mean <- 1e300
.cloak_counted <- function(release, X, row, exposure) {
  nodes <- unlist(release$counts$nodes)
  shares <- unlist(release$counts$shares)
  mixed <- lapply(release$parts, function(part) {
    found <- .cloak_latent(part, X[row, , drop = FALSE])
    expected <- pmin(exposure * exp(found$mean[1, 1] + sqrt(found$variance[1, 1]) * nodes), .cloak_largest_mean)
    means <- pmin(expected, .cloak_most_counted)
    scales <- .cloak_most_counted / pmax(expected, .cloak_most_counted)
    own <- part$overdispersion
    function(given) {
      count <- floor(given * scales)
      poisson <- own * means < 1e-9
      below <- stats::ppois(count, means)
      if (!all(poisson)) below[!poisson] <- stats::pnbinom(count[!poisson], size = 1 / own, mu = means[!poisson])
      part$weight * sum(shares * below)
    }
  })
  function(count) if (count < 0) 0 else sum(vapply(mixed, function(each) each(count), numeric(1)))
}
# Quantiles of the rate at each row: its logarithm is a mixture of normal laws, one of each part.
.cloak_rate_quantile <- function(release, X, share) {
  parts <- lapply(release$parts, function(part) {
    found <- .cloak_latent(part, X)
    list(weight = part$weight, mean = found$mean[, 1], sd = sqrt(found$variance[, 1]))
  })
  ends <- lapply(parts, function(part) part$mean + stats::qnorm(share) * part$sd)
  low <- do.call(pmin, ends)
  high <- do.call(pmax, ends)
  for (i in seq_len(if (length(parts) > 1) 60 else 0)) {
    middle <- (low + high) / 2
    below <- Reduce(`+`, lapply(parts, function(part)
      part$weight * stats::pnorm((middle - part$mean) / pmax(part$sd, .Machine$double.xmin)))) < share
    low <- ifelse(below, middle, low)
    high <- ifelse(below, high, middle)
  }
  exp((low + high) / 2)
}
.cloak_count_quantile <- function(below, share) {
  # Shares add up to 1 but for a rounding error, and this one may be closer to it.
  most <- min(share, below(Inf))
  low <- -1
  high <- 1
  while (below(high) < most) { low <- high; high <- 2 * high }
  # Large numbers have gaps.
  repeat {
    middle <- floor((low + high) / 2)
    if (middle <= low || middle >= high) return(high)
    if (below(middle) >= most) high <- middle else low <- middle
  }
}

# The nearest, in sum of squares, of at least `least` that add up to 1: what the largest have above the
# rest is taken off them.
.cloak_nearest <- function(shares, least) {
  mass <- 1 - least * length(shares)
  falling <- sort(shares - least, decreasing = TRUE)
  excess <- (cumsum(falling) - mass) / seq_along(falling)
  pmax(shares - least - excess[sum(falling > excess)], 0) + least
}
.cloak_probabilities <- function(release, X) {
  if (!is.null(release$least)) {
    shares <- .cloak_latent(release$parts[[1]], X)$mean
    return(t(matrix(apply(shares, 1, .cloak_nearest, least = release$least), ncol(shares))))
  }
  scales <- unlist(release$link$scales)
  weights <- unlist(release$link$weights)
  total <- matrix(0, nrow(X), length(release$classes))
  for (part in release$parts) {
    found <- .cloak_latent(part, X)
    shares <- found$mean * 0
    for (i in seq_along(scales))
      shares <- shares + weights[i] * stats::pnorm(found$mean / sqrt(scales[i]^2 + found$variance + part$noise))
    shares <- if (ncol(shares) == 1) cbind(1 - shares, shares) else shares / rowSums(shares)
    total <- total + part$weight * shares
  }
  total
}

# ---- From a table to inputs, as cloakgp.columns encodes it ----

# Text in digits, and what else is a number, or missing, among numbers: see cloakgp/privacy/entries.py.
.cloak_digits <- "[+-]?(?:[0-9]+(?:\\.[0-9]*)?|\\.[0-9]+)(?:[eE][+-]?[0-9]{1,9})?"
.cloak_in_digits <- sprintf("^[ \t]*(?:%s|\"[ \t]*%s[ \t]*\")[ \t]*\\z", .cloak_digits, .cloak_digits)
.cloak_words <- c(true = 1, false = 0, inf = Inf, infinity = Inf, `+inf` = Inf, `+infinity` = Inf, `-inf` = -Inf,
  `-infinity` = -Inf)
.cloak_empty <- c("", "NULL", "NaN", "None", "nan", "null", "-NaN", "-nan", "NA", "N/A", "n/a", "#N/A", "#NA", "#N/A N/A",
  "<NA>", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN")
# What Python takes for blanks; trimws takes others.
.cloak_blanks <- "[\t-\r\u001c- \u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+"
.cloak_iso <- paste0("^([0-9]{4})-([0-9]{2})-([0-9]{2})(?:[T ]([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:[.,]([0-9]+))?)?",
  "(Z|[+-][0-9]{2}(?::?[0-9]{2})?)?)?\\z")
# Of patterns of dates, as Python's strptime reads them.
.cloak_fields <- c(Y = "[0-9]{4}", m = "1[0-2]|0[1-9]|[1-9]", d = "3[01]|[12][0-9]|0[1-9]|[1-9]| [1-9]",
  H = "2[0-3]|[01][0-9]|[0-9]", M = "[0-5][0-9]|[0-9]", S = "6[01]|[0-5][0-9]|[0-9]", f = "[0-9]{1,6}",
  y = "[0-9]{2}", I = "1[0-2]|0[1-9]|[1-9]", p = "am|pm")

.cloak_fault <- function(name, rows, what) {
  if (any(rows, na.rm = TRUE))
    stop("column ", name, ", row ", which(rows)[1], ": ", what, call. = FALSE)
}
.cloak_stripped <- function(text) gsub(paste0("^", .cloak_blanks, "|", .cloak_blanks, "\\z"), "", text, perl = TRUE)
.cloak_unquoted <- function(text) gsub("^[ \t\"]+|[ \t\"]+\\z", "", text, perl = TRUE)

# Cells as text, numbers or truth values; those of classes that this file does not know are refused.
.cloak_cells <- function(name, cells) {
  if (inherits(cells, "AsIs")) class(cells) <- setdiff(oldClass(cells), "AsIs")
  if (is.factor(cells)) cells <- as.character(cells)
  if (is.object(cells) || !is.null(dim(cells)) || !(is.numeric(cells) || is.logical(cells) || is.character(cells)))
    stop("column ", name, ": cells of the class ", class(cells)[1], " cannot be read here: give text or numbers", call. = FALSE)
  if (is.character(cells)) enc2utf8(cells) else cells
}

# Numbers as Python writes them: whole ones without a point, others by the fewest digits that tell them.
.cloak_written <- function(numbers) {
  numbers <- as.numeric(numbers) + 0
  text <- tolower(sprintf("%.0f", numbers))
  open <- which(is.finite(numbers) & numbers != floor(numbers))
  for (digits in 15:17) if (length(open)) {
    text[open] <- sprintf("%.*g", digits, numbers[open])
    # R's own reading of text is not exact to the last bit.
    open <- open[jsonlite::fromJSON(paste0("[", paste(text[open], collapse = ","), "]")) != numbers[open]]
  }
  text
}

# Cells as text, as Python writes them; empty where they hold nothing.
.cloak_text <- function(name, cells) {
  cells <- .cloak_cells(name, cells)
  none <- is.na(cells)
  if (is.numeric(cells)) {
    whole <- is.finite(cells) & cells == floor(cells)
    .cloak_fault(name, whole & abs(cells) >= 2^53, "may have lost digits: give it as text")
    text <- .cloak_written(cells)
  } else text <- if (is.logical(cells)) tolower(as.character(cells)) else .cloak_stripped(cells)
  text[none] <- ""
  text
}

# The numbers that text is in the notation of Python, NA where it is none.
.cloak_entries <- function(text) {
  own <- .cloak_unquoted(text)
  digits <- grepl(.cloak_in_digits, text, perl = TRUE)
  values <- unname(.cloak_words[tolower(own)])
  values[digits] <- as.numeric(own[digits])
  values
}
.cloak_in_notation <- function(text, decimal, thousands) {
  text <- .cloak_unquoted(text)
  if (nzchar(thousands)) {
    grouped <- which(grepl(thousands, text, fixed = TRUE))
    point <- regexpr(decimal, text[grouped], fixed = TRUE)
    whole <- ifelse(point > 0, substr(text[grouped], 1, point - 1), text[grouped])
    rest <- ifelse(point > 0, substring(text[grouped], point), "")
    groups <- paste0("^[+-]?[0-9]{1,3}(?:\\Q", thousands, "\\E[0-9]{3})+\\z")
    text[grouped] <- ifelse(grepl(groups, whole, perl = TRUE), paste0(gsub(thousands, "", whole, fixed = TRUE), rest), "none")
  }
  if (decimal == ".") return(.cloak_entries(text))
  .cloak_entries(ifelse(grepl(".", text, fixed = TRUE), "none", gsub(decimal, ".", text, fixed = TRUE)))
}

.cloak_or <- function(value, other) if (is.null(value)) other else value

# Numbers in a notation, NA where a cell is missing or none, and which are missing.
.cloak_read_number <- function(column, name, cells, codes) {
  cells <- .cloak_cells(name, cells)
  decimal <- .cloak_or(column$decimal, ".")
  thousands <- .cloak_or(column$thousands, "")
  gaps <- is.na(cells)
  if (is.character(cells)) {
    text <- .cloak_stripped(cells)
    plain <- decimal == "." && thousands == ""
    values <- if (plain) .cloak_entries(cells) else .cloak_in_notation(text, decimal, thousands)
    if (plain) gaps <- gaps | (is.na(values) & .cloak_unquoted(cells) %in% .cloak_empty)
    if (!plain || length(setdiff(codes, .cloak_empty))) gaps <- gaps | text %in% c("", codes)
  } else values <- as.numeric(cells)
  # Codes are numbers as well: -99 and -99.0 are one.
  coded <- .cloak_entries(codes)
  list(values = values, gaps = gaps | values %in% coded[!is.na(coded)])
}

# Days since the start of 1970, by the parts of dates and times as text; NA if there is no such time.
.cloak_days <- function(parts) {
  part <- function(field, default) {
    text <- .cloak_or(parts[[field]], default)
    ifelse(is.na(text) | !nzchar(text), default, text)
  }
  number <- function(field, default) as.numeric(part(field, default))
  year <- number("Y", "1900")
  dates <- sprintf("%04.0f-%02.0f-%02.0f", year, number("m", "1"), number("d", "1"))
  midnight <- as.numeric(as.Date(dates, format = "%Y-%m-%d"))
  zone <- part("zone", "Z")
  digits <- substr(paste0(gsub("[^0-9]", "", zone), "0000"), 1, 4)
  hours <- as.numeric(substr(digits, 1, 2))
  minutes <- as.numeric(substr(digits, 3, 4))
  known <- year >= 1 & number("H", "0") < 24 & number("M", "0") < 60 & number("S", "0") < 60 & hours < 24 & minutes < 60
  ahead <- ifelse(startsWith(zone, "-"), -1, 1) * (60 * hours + minutes)
  seconds <- 86400 * midnight + 3600 * number("H", "0") + 60 * (number("M", "0") - ahead) + number("S", "0")
  microseconds <- as.numeric(substr(paste0(part("f", "0"), "00000"), 1, 6))
  ifelse(known, (1e6 * seconds + microseconds) / 86400e6, NA)
}
# Parts with the year in full, from 1969 to 2068, and the hour of the whole day.
.cloak_in_full <- function(parts) {
  if (!is.null(parts[["y"]])) {
    year <- as.numeric(parts[["y"]])
    parts[["Y"]] <- as.character(year + ifelse(year > 68, 1900, 2000))
  }
  if (!is.null(parts[["I"]])) {
    later <- if (is.null(parts[["p"]])) 0 else ifelse(tolower(parts[["p"]]) == "pm", 12, 0)
    parts[["H"]] <- as.character(as.numeric(parts[["I"]]) %% 12 + later)
  }
  parts
}
# The parts that a pattern finds in text, by their names; NA where it does not fit the whole of it.
.cloak_parts <- function(pattern, fields, text) {
  found <- regmatches(text, regexec(pattern, text, perl = TRUE))
  whole <- vapply(found, function(each) if (length(each)) each[1] else NA_character_, character(1))
  fit <- !is.na(whole) & nchar(whole) == nchar(text)
  parts <- lapply(seq_along(fields), function(i)
    vapply(found, function(each) if (length(each)) each[i + 1] else NA_character_, character(1)))
  list(fit = fit, parts = stats::setNames(parts, fields))
}
.cloak_pattern <- function(name, form) {
  parts <- regmatches(form, gregexpr("%.|\\s+|.", form, perl = TRUE))[[1]]
  fields <- substring(parts[startsWith(parts, "%")], 2)
  # Of fields that say the same, Python takes the last.
  twice <- all(c("Y", "y") %in% fields) || all(c("H", "I") %in% fields)
  if (anyDuplicated(fields) || twice || !all(fields %in% names(.cloak_fields)))
    stop("column ", name, ": dates as ", form, " cannot be read here as text: give a Date or a time", call. = FALSE)
  each <- vapply(parts, function(part)
    if (startsWith(part, "%")) paste0("(", .cloak_fields[[substring(part, 2)]], ")")
    else if (nzchar(trimws(part))) paste0("\\Q", part, "\\E") else "\\s+", character(1))
  list(pattern = paste0("(?i)^", paste(each, collapse = "")), fields = fields)
}
# Of times by type: as a clock shows them where they name no zone, or else in UTC.
.cloak_days_of_times <- function(cells) {
  moments <- as.POSIXct(cells)
  zone <- attr(cells, "tzone")
  shown <- as.POSIXlt(moments, tz = if (is.null(zone) || !nzchar(zone[1])) "" else "UTC")
  as.numeric(as.Date(shown)) + (3600 * shown$hour + 60 * shown$min + shown$sec) / 86400
}
.cloak_read_days <- function(column, name, cells, codes) {
  if (inherits(cells, "Date")) return(list(values = as.numeric(cells), gaps = is.na(cells)))
  if (inherits(cells, "POSIXt")) return(list(values = .cloak_days_of_times(cells), gaps = is.na(cells)))
  text <- .cloak_text(name, cells)
  written <- is.character(cells) || is.factor(cells)
  gaps <- text == "" | (written & text %in% codes)
  form <- .cloak_or(column$form, "default")
  values <- rep(NA_real_, length(text))
  open <- which(!gaps)
  if (length(open)) {
    iso <- list(pattern = .cloak_iso, fields = c("Y", "m", "d", "H", "M", "S", "f", "zone"))
    asked <- if (form == "default") iso else .cloak_pattern(name, form)
    found <- .cloak_parts(asked$pattern, asked$fields, text[open])
    values[open] <- ifelse(found$fit, .cloak_days(.cloak_in_full(found$parts)), NA)
  }
  what <- if (form == "default") "after ISO 8601" else paste("as", form)
  .cloak_fault(name, !gaps & is.na(values), paste("is no Date, no time and no date", what))
  list(values = values, gaps = gaps)
}

.cloak_sources <- function(column)
  switch(column$type, place = c(column$latitude, column$longitude), vector = unlist(column$columns), column$name)

# The inputs of a column, a matrix; rows that lack it are NA where such rows are left out.
.cloak_encode_column <- function(column, table, codes) {
  sources <- .cloak_sources(column)
  lacking <- setdiff(sources, names(table))
  if (length(lacking)) stop("there is no column ", paste(lacking, collapse = ", "), call. = FALSE)
  if (sum(names(table) %in% sources) > length(sources))
    stop("there is more than one column ", paste(sources, collapse = " or "), call. = FALSE)
  levels <- unlist(column$levels)
  cells <- table[[sources[1]]]
  name <- paste(sources, collapse = " and ")
  # The place of a level, -1 where a cell is none that is declared, and NA where it is missing.
  places <- function() {
    text <- .cloak_text(name, cells)
    found <- match(text, levels, nomatch = 0) - 1
    ifelse(text == "" | (found < 0 & text %in% codes), NA, found)
  }
  # Numbers that mean something only together: where one is missing, all are.
  numbers <- function(notation) {
    found <- lapply(sources, function(each) .cloak_read_number(notation, each, table[[each]], codes))
    gaps <- Reduce(`|`, lapply(found, `[[`, "gaps"))
    for (i in seq_along(found)) {
      .cloak_fault(sources[i], !gaps & is.na(found[[i]]$values), "is not a number")
      .cloak_fault(sources[i], !gaps & is.infinite(found[[i]]$values), "is infinite")
    }
    values <- matrix(vapply(found, `[[`, numeric(nrow(table)), "values"), nrow(table))
    values[gaps, ] <- NA
    values
  }
  values <- switch(column$type,
    number = numbers(column),
    date = {
      found <- .cloak_read_days(column, name, cells, codes)
      ifelse(found$gaps, NA, found$values)
    },
    boolean = {
      text <- .cloak_text(name, cells)
      gaps <- text %in% c("", codes)
      # True by type is yes, whatever the words for it are.
      words <- if (is.logical(cells)) list("true", "false") else list(column$true_values, column$false_values)
      yes <- tolower(text) %in% tolower(unlist(words[[1]]))
      no <- tolower(text) %in% tolower(unlist(words[[2]]))
      .cloak_fault(name, !gaps & !yes & !no, "is neither yes nor no")
      ifelse(gaps, NA, as.numeric(yes))
    },
    category = {
      found <- places()
      if (!column$other) .cloak_fault(name, found < 0, "is a level that is not declared")
      ifelse(found < 0, length(levels), found)
    },
    `ordered category` = {
      found <- places()
      if (column$missing == "refuse") .cloak_fault(name, found < 0, "is a level that is not declared")
      ifelse(found < 0, NA, found)
    },
    place = {
      both <- numbers(list())
      .cloak_fault(name, abs(both[, 1]) > 90 | abs(both[, 2]) > 360, "is no latitude and longitude in degrees")
      both
    },
    vector = numbers(list()),
    stop("a column of the kind ", column$type, " cannot be read here", call. = FALSE)
  )
  values <- as.matrix(values)
  gaps <- is.na(values[, 1])
  .cloak_fault(name, !gaps & !apply(is.finite(values), 1, all), "is not a finite number")
  if (column$missing == "refuse") .cloak_fault(name, gaps, "is empty")
  filling <- switch(column$type, boolean = 0.5, place = , vector = unlist(column$centre),
    category = length(levels) + if (isTRUE(column$other)) 1 else 0, column$fill)
  for (i in seq_along(filling)) values[gaps, i] <- if (column$missing == "drop") NA else filling[i]
  X <- .cloak_expand(column, values)
  if (column$missing == "impute") X <- cbind(X, as.numeric(gaps))
  X
}

.cloak_expand <- function(column, values) {
  radians <- function(degrees) degrees * pi / 180
  switch(column$type,
    category = {
      slots <- length(column$levels) + isTRUE(column$other) + (column$missing == "category")
      X <- outer(values[, 1], seq_len(slots) - 1, "==") * sqrt(0.5)
      matrix(X, nrow(values))
    },
    date = {
      parts <- if (isTRUE(column$linear)) list(values[, 1]) else list()
      for (cycle in unlist(column$cycles)) {
        angle <- 2 * pi * (values[, 1] - 4) / c(day = 1, week = 7, year = 365.2425)[[cycle]]
        parts <- c(parts, list(cos(angle), sin(angle)))
      }
      do.call(cbind, parts)
    },
    place = {
      radius <- 6371.0088
      latitude <- radians(values[, 1])
      longitude <- radians(values[, 2])
      if (column$projection == "sphere")
        radius * cbind(cos(latitude) * cos(longitude), cos(latitude) * sin(longitude), sin(latitude))
      else {
        centre <- radians(unlist(column$centre))
        turn <- (longitude - centre[2] + pi) %% (2 * pi) - pi
        radius * cbind(latitude - centre[1], cos(centre[1]) * turn)
      }
    },
    vector = if (!length(column$axes)) values else {
      axes <- matrix(unlist(column$axes), nrow = length(column$columns))
      sweep(values, 2, unlist(column$centre)) %*% axes
    },
    values
  )
}

.cloak_inputs <- function(release, newdata) {
  names <- release$input_names
  if (is.data.frame(newdata) && !is.null(release$schema)) {
    codes <- as.character(unlist(release$schema$missing_values))
    used <- Filter(function(column) column$type != "identifier", release$schema$columns)
    X <- do.call(cbind, lapply(used, .cloak_encode_column, table = newdata, codes = codes))
    # Inputs that no column gives, as public predictions by a model, are to be given in figures.
    if (ncol(X) != length(names))
      stop("these columns give ", ncol(X), " inputs, and it takes ", length(names), call. = FALSE)
    return(X)
  }
  if (is.data.frame(newdata)) {
    lacking <- setdiff(names, names(newdata))
    if (length(lacking)) stop("there is no column ", paste(lacking, collapse = ", "), call. = FALSE)
    for (name in names) .cloak_cells(name, newdata[[name]])
    newdata <- as.matrix(newdata[names])
  }
  if (is.null(dim(newdata))) newdata <- matrix(newdata, nrow = 1)
  if (ncol(newdata) != length(names) || !is.numeric(newdata) || !all(is.finite(newdata)))
    stop("inputs are ", length(names), " columns of finite numbers: ", paste(names, collapse = ", "), call. = FALSE)
  unname(newdata)
}

# One for each row: given ones, or one for all.
.cloak_exposures <- function(release, exposure, rows) {
  if (is.null(exposure)) return(rep_len(1, rows))
  if (release$outputs != "counts")
    stop("exposure is of counts, and this release is about other outputs", call. = FALSE)
  if (!is.numeric(exposure) || !(length(exposure) %in% c(1, rows)))
    stop("exposure is a number, or one for each row", call. = FALSE)
  if (!all(is.finite(exposure) & exposure > 0)) stop("exposure is positive and finite", call. = FALSE)
  rep_len(as.vector(exposure), rows)
}

# Of rows that lack nothing, and their exposures; NA for the others.
.cloak_for_rows <- function(release, newdata, told, exposure = NULL) {
  X <- .cloak_inputs(release, newdata)
  exposure <- .cloak_exposures(release, exposure, nrow(X))
  known <- !apply(is.na(X), 1, any)
  found <- told(X[known, , drop = FALSE], exposure[known])
  row <- rep(NA_integer_, length(known))
  row[known] <- seq_len(sum(known))
  if (is.null(dim(found))) found[row] else {
    found <- found[row, , drop = FALSE]
    rownames(found) <- NULL
    found
  }
}

# ---- What is offered ----

# Read a release from its file.
read_release <- function(path) {
  opened <- .cloak_open(path)
  manifest <- opened$manifest
  arrays <- opened$arrays
  if (manifest$kind == "histogram") return(.cloak_histogram(opened))
  if (!(manifest$kind %in% c("one output", "regression of several outputs", "statistics")))
    stop("a release of ", manifest$kind, " cannot be read here: predict in Python", call. = FALSE)
  release <- manifest$coefficients
  if (is.null(release))
    stop("it was written without what programs in other languages predict by: open it in Python and save it again",
      call. = FALSE)
  if (!is.null(manifest$predictor) || !is.null(manifest$public_rows))
    stop("public predictions by a release or rows within it cannot be computed here: predict in Python", call. = FALSE)
  .cloak_check_known(release, .cloak_known)
  release$parts <- lapply(release$parts, .cloak_part, arrays = arrays)
  for (name in c("grid", "curves"))
    if (!is.null(release$calibration)) release$calibration[[name]] <- arrays[[release$calibration[[name]]]]
  names <- unlist((if (is.null(manifest$entries)) manifest else manifest$entries)$input_names)
  release$input_names <- if (length(names)) names[seq_len(release$inputs)] else paste0("x", seq_len(release$inputs))
  release$schema <- manifest$schema
  release$kind <- manifest$kind
  release$output_names <- if (is.null(release$several)) manifest$output_name
    else vapply(release$several, function(each) each$name, character(1))
  release$checked <- opened$checked
  if (is.null(release$several) && release$outputs != "classes") .cloak_inverse(release)
  structure(release, class = "cloakgp_release")
}

print.cloakgp_release <- function(x, ...) {
  cat("Release about ", paste(x$output_names, collapse = ", "), ", of ", x$outputs,
    if (isTRUE(x$insecure)) "; NOT PRIVATE: its noise came from a fixed seed",
    if (!x$checked) "; its digests were not compared, for which R is 4.5 or has the package digest", "\n", sep = "")
  invisible(x)
}

# Predict, a row of the result for a row of a table: of numbers mean, sd and new_sd, which is that of
# a new output (of several outputs, of each); of transformed numbers the median, and of counts the
# rate, with limits that hold the curve with 95 %; quantiles with such limits; of classes the most
# probable one, and the probability of each.
predict.cloakgp_release <- function(object, newdata, ...) {
  .cloak_for_rows(object, newdata, function(X, exposure) {
    if (object$outputs == "classes") {
      shares <- .cloak_probabilities(object, X)
      labels <- unlist(object$classes)[max.col(shares, "first")]
      colnames(shares) <- paste0("p_", vapply(object$classes, as.character, character(1)))
      return(data.frame(predicted = labels, shares, check.names = FALSE))
    }
    if (!is.null(object$several)) {
      each <- lapply(seq_along(object$several), function(which) {
        own <- object$several[[which]]
        found <- .cloak_moments(object, cbind(X, which - 1))
        found <- data.frame(own$middle + own$width * found$mean, own$width * found$sd, own$width * found$new_sd)
        stats::setNames(found, paste0(own$name, c("", "_sd", "_new_sd")))
      })
      return(do.call(cbind, each))
    }
    if (object$outputs == "quantiles") {
      within <- .cloak_inverse(object)
      curves <- .cloak_curves(object, X)
      rows <- seq_len(nrow(X))
      sorted <- function(values) t(apply(values, 1, sort))
      reach <- stats::qnorm(0.975) * curves$sd
      middle <- lapply(rows, function(row) .cloak_beyond(object, curves, row)$heights)
      ends <- list(do.call(rbind, middle), sorted(curves$mean - reach), sorted(curves$mean + reach))
      levels <- paste0("q_", 100 * unlist(object$quantiles$levels))
      each <- lapply(seq_along(levels), function(k) {
        found <- data.frame(lapply(ends, function(values) within(matrix(values, nrow(X))[, k])))
        stats::setNames(found, paste0(levels[k], c("", "_lower", "_upper")))
      })
      return(do.call(cbind, each))
    }
    if (object$outputs == "counts") {
      ends <- lapply(c(0.5, 0.025, 0.975), function(share) .cloak_rate_quantile(object, X, share))
      return(data.frame(rate = ends[[1]], lower = ends[[2]], upper = ends[[3]]))
    }
    found <- .cloak_moments(object, X)
    reach <- stats::qnorm(0.975) * found$sd
    if (is.null(object$transform)) return(data.frame(found))
    within <- .cloak_inverse(object)
    data.frame(median = within(found$mean), lower = within(found$mean - reach), upper = within(found$mean + reach))
  })
}

.cloak_check_one <- function(release) {
  if (release$outputs == "classes" || !is.null(release$several))
    stop("intervals, and probabilities above a threshold, are told of releases of one number", call. = FALSE)
}

# Where no answer tells the noise of new outputs: a mixture of normal laws, see
# cloakgp/release/unknown_noise.py. How much of it lies below so many sds.
.cloak_mixed <- function(unknown, found, row) {
  own <- 1 - (found$sd[row] / found$new_sd[row])^2
  scales <- sqrt(1 + own * (unlist(unknown$multiples) - 1))
  shares <- unlist(unknown$shares)
  function(step) sum(shares * stats::pnorm(step / scales))
}
.cloak_root <- function(below, probability) {
  ends <- c(-38, 38)
  while (below(ends[1]) > probability) ends[1] <- 2 * ends[1]
  while (below(ends[2]) < probability) ends[2] <- 2 * ends[2]
  for (i in seq_len(100)) {
    middle <- mean(ends)
    if (below(middle) < probability) ends[1] <- middle else ends[2] <- middle
  }
  mean(ends)
}

# What holds one new output with a probability: columns lower and upper. Of counts, exposure is a
# number, or one for each row, and 1 if not given.
predict_interval <- function(release, newdata, coverage = 0.9, exposure = NULL) {
  .cloak_check_one(release)
  if (isTRUE(release$margins))
    stop("intervals by margins of rows that were kept out cannot be told here: predict in Python", call. = FALSE)
  stopifnot(coverage > 0, coverage < 1)
  tails <- c(0.5 - coverage / 2, 0.5 + coverage / 2)
  within <- .cloak_inverse(release)
  .cloak_for_rows(release, newdata, function(X, exposure) {
    if (release$outputs == "quantiles") curves <- .cloak_curves(release, X)
    else if (release$outputs != "counts") found <- .cloak_moments(release, X)
    ends <- vapply(seq_len(nrow(X)), function(row) {
      if (release$outputs == "counts") {
        below <- .cloak_counted(release, X, row, exposure[row])
        return(vapply(tails, function(tail) .cloak_count_quantile(below, tail), numeric(1)))
      }
      if (release$outputs == "quantiles") {
        beyond <- .cloak_beyond(release, curves, row)
        return(within(vapply(stats::qnorm(tails), beyond$quantile, numeric(1))))
      }
      steps <- stats::qnorm(tails)
      if (!is.null(release$unknown_noise)) {
        below <- .cloak_mixed(release$unknown_noise, found, row)
        steps <- vapply(tails, function(tail) .cloak_root(below, tail), numeric(1))
      }
      if (!is.null(release$calibration)) {
        curve <- .cloak_curve(release$calibration, found$mean[row])
        steps <- vapply(tails, .cloak_between, numeric(1), points = curve, heights = as.vector(release$calibration$grid))
      }
      within(found$mean[row] + steps * found$new_sd[row])
    }, numeric(2))
    data.frame(lower = ends[1, ], upper = ends[2, ])
  }, exposure)
}

# How probable it is that one new output lies above a threshold. Of counts, exposure is a number, or
# one for each row, and 1 if not given.
probability_above <- function(release, newdata, threshold, exposure = NULL) {
  .cloak_check_one(release)
  stopifnot(is.finite(threshold))
  bounds <- unlist(release$bounds)
  .cloak_for_rows(release, newdata, function(X, exposure) {
    rows <- seq_len(nrow(X))
    if (release$outputs == "counts")
      return(vapply(rows, function(row) 1 - .cloak_counted(release, X, row, exposure[row])(floor(threshold)), numeric(1)))
    if (release$outputs == "quantiles") {
      curves <- .cloak_curves(release, X)
      asked <- .cloak_forward(release, min(max(threshold, bounds[1]), bounds[2]))
      return(vapply(rows, function(row) stats::pnorm(-.cloak_beyond(release, curves, row)$step(asked)), numeric(1)))
    }
    if (threshold < bounds[1]) return(rep(1, nrow(X)))
    if (threshold >= bounds[2]) return(rep(0, nrow(X)))
    found <- .cloak_moments(release, X)
    step <- (.cloak_forward(release, threshold) - found$mean) / found$new_sd
    if (!is.null(release$unknown_noise))
      return(vapply(rows, function(row) .cloak_mixed(release$unknown_noise, found, row)(-step[row]), numeric(1)))
    if (is.null(release$calibration)) return(stats::pnorm(-step))
    grid <- as.vector(release$calibration$grid)
    vapply(rows, function(row) {
      if (step[row] < grid[1]) return(1)
      if (step[row] > grid[length(grid)]) return(0)
      1 - .cloak_between(step[row], grid, .cloak_curve(release$calibration, found$mean[row]))
    }, numeric(1))
  }, exposure)
}

# Noisy means in boxes of a grid; a row outside it belongs to the nearest.
.cloak_histogram <- function(opened) {
  manifest <- opened$manifest
  edges <- lapply(manifest$bins$edges, function(name) as.vector(opened$arrays[[name]]))
  names <- unlist(manifest$input_names)
  structure(list(
    kind = "histogram", outputs = "numbers", output_names = "y", insecure = manifest$insecure, checked = opened$checked,
    input_names = if (length(names)) names else paste0("x", seq_along(edges)), edges = edges,
    bounds = unlist(manifest$bounds), noise_sd = manifest$noise_sd, places = opened$arrays[[manifest$places]],
    counts = opened$arrays[[manifest$counts]], sums = opened$arrays[[manifest$sums]]
  ), class = c("cloakgp_histogram", "cloakgp_release"))
}

predict.cloakgp_histogram <- function(object, newdata, ...) {
  X <- .cloak_inputs(object, newdata)
  cell <- function(places) do.call(paste, as.data.frame(places))
  at <- vapply(seq_along(object$edges), function(d) {
    edges <- object$edges[[d]]
    pmin(pmax(findInterval(X[, d], edges) - 1, 0), length(edges) - 2)
  }, numeric(nrow(X)))
  found <- match(cell(matrix(at, nrow(X))), cell(object$places))
  mean <- mean(object$bounds) + object$sums / object$counts
  mean <- pmin(pmax(mean, object$bounds[1]), object$bounds[2])[found]
  sd <- (object$noise_sd / object$counts)[found]
  data.frame(
    mean = ifelse(is.na(found), mean(object$bounds), mean),
    sd = ifelse(is.na(found), diff(object$bounds) / sqrt(12), sd)
  )
}
