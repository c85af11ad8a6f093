"""Which source to look at next, and why.

scores      informativeness of every source, and the three-way split of predictive entropy
strategies  what to ask for by which score: a register that other packages add to
posterior   draws, entropy split and scores of sources by a fitted model
gain        what a better measurement would bring, and what a label would
observing   observing time, visibility and flux limits as weights
batch       several targets at once without near-duplicates
learner     a modAL ActiveLearner that carries error bars
loop        one immutable table and the labels given so far
simulate    retrospective studies against random
campaign    a durable labelling campaign in a folder
"""
