# Numbers of R's survival for tests/golden/test_horizon.py, from horizon.csv: Rscript horizon.R > horizon_r.json
library(survival)
d <- read.csv("horizon.csv")
d$alone <- as.integer(d$kind == 1)
H <- 365
at <- function(fit, what) { i <- max(which(fit$time <= H)); if (is.matrix(fit[[what]])) fit[[what]][i, 2] else fit[[what]][i] }
km <- survfit(Surv(time, alone) ~ 1, d)
aj <- survfit(Surv(time, factor(kind, 0:2)) ~ 1, d)
# Austin, Harrell and van Klaveren: Cox on a restricted cubic spline of log(-log(1 - p)), observed risk by H
z <- log(-log(1 - d$score))
rcs <- function(z, k) {
  n <- length(k); s <- (k[n] - k[1])^2; p <- function(v) pmax(z - v, 0)^3
  cbind(z, sapply(seq_len(n - 2), function(j)
    (p(k[j]) - p(k[n - 1]) * (k[n] - k[j]) / (k[n] - k[n - 1]) + p(k[n]) * (k[n - 1] - k[j]) / (k[n] - k[n - 1])) / s))
}
q <- list("3" = c(.1, .5, .9), "5" = c(.05, .275, .5, .725, .95))
ici <- lapply(q, function(at) {
  x <- rcs(z, quantile(z, at))
  fit <- coxph(Surv(time, alone) ~ x, d, ties = "efron")
  base <- basehaz(fit, centered = FALSE)
  o <- 1 - exp(-base$hazard[max(which(base$time <= H))] * exp(drop(x %*% coef(fit))))
  off <- abs(o - d$score)
  c(ici = mean(off), e50 = unname(quantile(off, .5)), e90 = unname(quantile(off, .9)), emax = max(off))
})
# the same with competing events, by Fine and Gray's model (Austin, Putter, Giardiello and van Klaveren)
own <- function(time, x, horizon) {
  v <- paste0("x", seq_len(ncol(x))); colnames(x) <- v
  g <- finegray(Surv(time, status) ~ ., data.frame(time = time, status = factor(d$kind, 0:2), x), etype = "1")
  fit <- coxph(reformulate(v, "Surv(fgstart, fgstop, fgstatus)"), g, weights = fgwt, ties = "efron")
  base <- basehaz(fit, centered = FALSE)
  list(beta = unname(coef(fit)), hazard = base$hazard[max(which(base$time <= horizon))])
}
rival <- lapply(q, function(at) {
  x <- rcs(z, quantile(z, at)); fit <- own(d$time, x, H)
  off <- abs(1 - exp(-fit$hazard * exp(drop(x %*% fit$beta))) - d$score)
  c(ici = mean(off), e50 = unname(quantile(off, .5)), e90 = unname(quantile(off, .9)), emax = max(off))
})
# the same with times rounded to months, which tie
months <- ceiling(d$time / 30)
fit <- coxph(Surv(months, d$alone) ~ z, ties = "efron")
base <- basehaz(fit, centered = FALSE)
out <- list(risk = 1 - at(km, "surv"), risk_error = at(km, "std.err") * at(km, "surv"),
            competing_risk = at(aj, "pstate"), ties_beta = unname(coef(fit)),
            ties_hazard = base$hazard[max(which(base$time <= 12))])
tied <- own(months, cbind(z), 12)
out <- c(out, competing_ties_beta = tied$beta, competing_ties_hazard = tied$hazard)
write1 <- function(v) paste0("{", paste(sprintf("\"%s\": %.17g", names(v), unlist(v)), collapse = ", "), "}")
cat("{\n \"versions\": \"R ", paste(R.version$major, R.version$minor, sep = "."), ", survival ",
    as.character(packageVersion("survival")), "\",\n \"survival\": ", write1(out), ",\n \"ici\": {\"3\": ",
    write1(ici[["3"]]), ", \"5\": ", write1(ici[["5"]]), "},\n \"competing_ici\": {\"3\": ", write1(rival[["3"]]),
    ", \"5\": ", write1(rival[["5"]]), "}\n}\n", sep = "")
