"""Which source to look at next, and why.

scores      informativeness of every source, and the three-way split of predictive entropy
posterior   p(y | f, x) on quadrature over the error bars × posterior samples
gain        what a better measurement would bring, and what a label would
observing   observing time, visibility and flux limits as weights
batch       several targets at once without near-duplicates
learner     a modAL ActiveLearner that carries error bars; warm starts
loop        one immutable table and the labels given so far
simulate    retrospective studies against random
campaign    a durable labelling campaign in a folder
"""
