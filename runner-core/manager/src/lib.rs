//! runner-core: takes jobs, finds environments for them, delivers, follows, reports.
