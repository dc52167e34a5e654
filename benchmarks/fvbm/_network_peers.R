# Networks by R packages that are installed: BoltzMM (binary columns, with standard errors) and mgm
# (categorical columns, by node, the penalty by EBIC).
#
# Rscript _network_peers.R PACKAGE TABLE.csv FOLDER
#
# writes coupling.csv (of mgm the weights of pairs) and for BoltzMM intercept.csv and std_err.csv to
# the folder, and to run.txt the version and the seconds of processor of the fit and of the errors.
arguments <- commandArgs(trailingOnly = TRUE)
name <- arguments[1]
x <- as.matrix(read.csv(arguments[2], header = FALSE))
folder <- arguments[3]
suppressMessages(library(name, character.only = TRUE))

seconds <- function(spent) spent[["user.self"]] + spent[["sys.self"]]
keep <- function(values, file) {
  write.table(values, file.path(folder, file), sep = ",", row.names = FALSE, col.names = FALSE)
}

d <- ncol(x)
errors <- 0
if (name == "BoltzMM") {
  fit <- seconds(system.time(
    model <- fitfvbm(x, rep(0, d), matrix(0, d, d), delta_crit = 1e-5, max_it = 10000L)
  ))
  errors <- seconds(system.time({
    covariance <- fvbmcov(x, model, fvbmHess)
    found <- fvbmstderr(x, covariance)
  }))
  keep(model$Mmat, "coupling.csv")
  keep(model$bvec, "intercept.csv")
  keep(found$Mmat_se, "std_err.csv")
} else {
  fit <- seconds(system.time(
    model <- mgm(
      x, type = rep("c", d), level = apply(x, 2, max), lambdaSel = "EBIC", lambdaGam = 0.25,
      ruleReg = "AND", pbar = FALSE, signInfo = FALSE, warnings = FALSE, saveModels = FALSE
    )
  ))
  keep(model$pairwise$wadj, "coupling.csv")
}
writeLines(c(paste(name, packageVersion(name)), fit, errors), file.path(folder, "run.txt"))
