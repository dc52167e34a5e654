# What the R package IsingFit 0.4 documents, written anew on glmnet, for machines without it:
# a logistic lasso of each column on all others, the penalty by EBIC, the AND rule.
#
# Rscript _isingfit.R TABLE.csv FOLDER GAMMA
# writes weights, thresholds and seconds to the folder.
suppressMessages(library(glmnet))

arguments <- commandArgs(trailingOnly = TRUE)
x <- as.matrix(read.csv(arguments[1], header = FALSE))
folder <- arguments[2]
gamma <- as.numeric(arguments[3])

started <- proc.time()[["elapsed"]]
n <- nrow(x)
d <- ncol(x)
asymmetric <- matrix(0, d, d)
thresholds <- numeric(d)
for (j in seq_len(d)) {
  path <- glmnet(x[, -j], x[, j], family = "binomial")
  eta <- sweep(x[, -j] %*% as.matrix(path$beta), 2, path$a0, "+")
  log_likelihood <- colSums(x[, j] * eta - log1p(exp(eta)))
  size <- colSums(as.matrix(path$beta) != 0)
  ebic <- -2 * log_likelihood + size * log(n) + 2 * gamma * size * log(d - 1)
  best <- which.min(ebic)
  asymmetric[j, -j] <- path$beta[, best]
  thresholds[j] <- path$a0[best]
}
both <- (asymmetric != 0) & (t(asymmetric) != 0)
weights <- (asymmetric + t(asymmetric)) / 2 * both
seconds <- proc.time()[["elapsed"]] - started

write.table(weights, file.path(folder, "weights.csv"), sep = ",", row.names = FALSE, col.names = FALSE)
write.table(thresholds, file.path(folder, "thresholds.csv"), sep = ",", row.names = FALSE, col.names = FALSE)
write(seconds, file.path(folder, "seconds.txt"))
