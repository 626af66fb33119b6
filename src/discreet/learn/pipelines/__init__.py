"""Steps before a learner: public ones, whose rules follow from declarations, and private ones, which are paid for."""
