# Releases of every kind that is kept predict here as they do in Python, or are refused by name:
#   Rscript golden.R FOLDER
here <- dirname(sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE)))
source(file.path(here, "cloakgp.R"))
folder <- commandArgs(trailingOnly = TRUE)[1]
TOLERANCE <- 1e-8
REFUSED <- c(all_kernels = "the kernel PairwiseKernel cannot", gibbs_kernel = "the kernel GibbsKernel cannot",
  integral_histogram_gaussian = "the kernel IntegralRBF cannot", integral_histogram_laplace = "the kernel IntegralRBF cannot",
  public_prediction_by_a_release = "public predictions by a release or rows within it cannot",
  public_prediction_by_rows = "public predictions by a release or rows within it cannot")
alike <- function(found, expected, what) {
  found <- unname(as.matrix(found))
  expected <- unname(as.matrix(expected))
  if (!identical(dim(found), dim(expected))) stop(what, ": another shape")
  if (max(abs(found - expected)) > TOLERANCE * max(abs(expected), 0)) stop(what, ": other numbers")
}
names <- sub("\\.cloak$", "", list.files(folder, "\\.cloak$"))
stopifnot(all(names(REFUSED) %in% names))
for (name in names) {
  path <- file.path(folder, paste0(name, ".cloak"))
  if (name %in% names(REFUSED)) {
    said <- tryCatch({ read_release(path); "nothing" }, error = conditionMessage)
    if (!grepl(REFUSED[[name]], said, fixed = TRUE)) stop(name, " is not refused: ", said)
    next
  }
  release <- read_release(path)
  known <- jsonlite::fromJSON(file.path(folder, paste0(name, ".json")))
  points <- as.matrix(known$points)
  found <- predict(release, points)
  expected <- known$predictions
  told <- function(pattern) found[, grepl(pattern, names(found)), drop = FALSE]
  several <- !is.null(release$several)
  if (release$outputs == "classes") {
    whole_rows <- !is.null(expected$mean_probabilities)
    alike(told("^p_"), if (whole_rows) expected$mean_probabilities else expected$probabilities, name)
    if (!whole_rows)
      stopifnot(identical(found$predicted, expected$labels), identical(unlist(release$classes), expected$classes))
  } else if (release$outputs == "quantiles") {
    alike(told("^q_[0-9.]+$"), expected$quantiles, name)
    alike(told("_lower$"), expected$lower, name)
    alike(told("_upper$"), expected$upper, name)
  } else if (several) {
    alike(found[, seq(1, ncol(found), 3)], expected$mean, name)
    alike(found[, seq(2, ncol(found), 3)], expected$sd, name)
    alike(found[, seq(3, ncol(found), 3)], expected$sd_of_new_output, name)
  } else if (release$outputs == "counts") alike(found$rate, expected$mean, name)
  else {
    alike(found$mean, expected$mean, name)
    alike(found$sd, expected$sd, name)
    if (!is.null(expected$sd_of_new_output)) alike(found$new_sd, expected$sd_of_new_output, name)
  }
  if (!is.null(expected$quartiles_of_new_output))
    alike(predict_interval(release, points, 0.5), expected$quartiles_of_new_output, name)
  if (!is.null(expected$interval_of_new_output) && !isTRUE(release$margins))
    alike(t(predict_interval(release, points, 0.8)), expected$interval_of_new_output, name)
  if (isTRUE(release$margins)) {
    said <- tryCatch({ predict_interval(release, points); "nothing" }, error = conditionMessage)
    stopifnot(grepl("margins of rows that were kept out cannot be told here", said))
  }
  stopifnot(identical(release$insecure, known$insecure))
}
cat(length(names) - length(REFUSED), "releases predict alike,", length(REFUSED), "are refused\n")
