# A network of bits by a logistic lasso of each column on all others, the penalty by EBIC: by the R
# package IsingFit if it is installed, else by the same steps: glmnet for each column, then the
# log-likelihood of each row for each penalty, summed up regressor by regressor.
#
# Rscript _isingfit.R TABLE.csv FOLDER GAMMA
#
# writes weights.csv to the folder, and to run.txt what ran, its seconds, its seconds of processor,
# and those of glmnet alone.
suppressMessages(library(glmnet))

arguments <- commandArgs(trailingOnly = TRUE)
x <- as.matrix(read.csv(arguments[1], header = FALSE))
folder <- arguments[2]
gamma <- as.numeric(arguments[3])

seconds <- function(spent) spent[["user.self"]] + spent[["sys.self"]]

same_steps <- function(x, gamma) {
  n <- nrow(x)
  d <- ncol(x)
  paths <- lapply(seq_len(d), function(j) glmnet(x[, -j], x[, j], family = "binomial"))
  longest <- max(sapply(paths, function(path) length(path$lambda)))
  by_row <- array(NA, c(n, longest, d))
  for (j in seq_len(d)) {
    beta <- as.matrix(paths[[j]]$beta)
    others <- x[, -j]
    eta <- matrix(paths[[j]]$a0, n, ncol(beta), byrow = TRUE)
    for (k in seq_len(d - 1)) eta <- eta + beta[rep(k, n), ] * others[, k]
    by_row[, seq_len(ncol(eta)), j] <- log(exp(eta * x[, j]) / (1 + exp(eta)))
  }
  log_likelihood <- colSums(by_row)
  asymmetric <- matrix(0, d, d)
  for (j in seq_len(d)) {
    beta <- as.matrix(paths[[j]]$beta)
    size <- colSums(beta != 0)
    price <- size * log(n) + 2 * gamma * size * log(d - 1)
    ebic <- -2 * log_likelihood[seq_along(size), j] + price
    asymmetric[j, -j] <- beta[, which.min(ebic)]
  }
  both <- (asymmetric != 0) & (t(asymmetric) != 0)
  (asymmetric + t(asymmetric)) / 2 * both
}

has_package <- requireNamespace("IsingFit", quietly = TRUE)
started <- proc.time()
if (has_package) {
  weights <- IsingFit::IsingFit(x, gamma = gamma, plot = FALSE, progressbar = FALSE)$weiadj
} else {
  weights <- same_steps(x, gamma)
}
spent <- proc.time() - started

write.table(weights, file.path(folder, "weights.csv"), sep = ",", row.names = FALSE, col.names = FALSE)
what <- if (has_package) "IsingFit" else "the steps of IsingFit"
alone <- system.time(
  for (j in seq_len(ncol(x))) glmnet(x[, -j], x[, j], family = "binomial")
)
writeLines(
  c(paste(what, "with glmnet", packageVersion("glmnet")), spent[["elapsed"]], seconds(spent), seconds(alone)),
  file.path(folder, "run.txt")
)
