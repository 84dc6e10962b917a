//! The keys of `[runners.kubernetes.affinity]`: the names of Kubernetes in snake case.

use super::kubernetes::POD;
use super::{Key, Kind, Table, key};

const fn table(name: &'static str, is_list: bool, about: &'static str, keys: &'static [Key]) -> Table {
    Table { name, is_list, about, standing: POD, keys }
}

pub(super) static AFFINITY: Table = table(
    "runners.kubernetes.affinity",
    false,
    "What pods are near to.",
    &[
        key("node_affinity", Kind::Table(&NODE), "which nodes"),
        key("pod_affinity", Kind::Table(&POD_AFFINITY), "near which pods"),
        key("pod_anti_affinity", Kind::Table(&POD_ANTI_AFFINITY), "away from which pods"),
    ],
);

const REQUIRED: &str = "required_during_scheduling_ignored_during_execution";
const PREFERRED: &str = "preferred_during_scheduling_ignored_during_execution";

static NODE: Table = table(
    "runners.kubernetes.affinity.node_affinity",
    false,
    "Which nodes.",
    &[key(REQUIRED, Kind::Table(&NODE_SELECTOR), "must be so"), key(PREFERRED, Kind::Tables(&PREFERRED_TERM), "should be so")],
);

static POD_AFFINITY: Table = table("runners.kubernetes.affinity.pod_affinity", false, "Near which pods.", POD_TERMS);
static POD_ANTI_AFFINITY: Table = table("runners.kubernetes.affinity.pod_anti_affinity", false, "Away from which pods.", POD_TERMS);

const POD_TERMS: &[Key] =
    &[key(REQUIRED, Kind::Tables(&POD_TERM), "must be so"), key(PREFERRED, Kind::Tables(&WEIGHTED_POD_TERM), "should be so")];

static NODE_SELECTOR: Table = table(
    "runners.kubernetes.affinity.*.node_selector",
    false,
    "Nodes that match one of the terms.",
    &[key("node_selector_terms", Kind::Tables(&NODE_TERM), "terms")],
);

static PREFERRED_TERM: Table = table(
    "runners.kubernetes.affinity.*.preferred",
    true,
    "A term with its weight.",
    &[key("weight", Kind::Whole, "1 to 100"), key("preference", Kind::Table(&PREFERENCE), "the term")],
);

static NODE_TERM: Table = table("runners.kubernetes.affinity.*.node_selector_terms", true, "A term about nodes.", NODE_TERM_KEYS);
static PREFERENCE: Table = table("runners.kubernetes.affinity.*.preference", false, "A term about nodes.", NODE_TERM_KEYS);

const NODE_TERM_KEYS: &[Key] = &[
    key("match_expressions", Kind::Tables(&REQUIREMENT), "about labels"),
    key("match_fields", Kind::Tables(&REQUIREMENT), "about fields"),
];

static REQUIREMENT: Table = table(
    "runners.kubernetes.affinity.*.match_expressions",
    true,
    "One condition.",
    &[
        key("key", Kind::Text, "name"),
        key("operator", Kind::OneOf(&["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]), "how it is compared"),
        key("values", Kind::Texts, "with what"),
    ],
);

static WEIGHTED_POD_TERM: Table = table(
    "runners.kubernetes.affinity.*.weighted_pod_affinity_term",
    true,
    "A term with its weight.",
    &[key("weight", Kind::Whole, "1 to 100"), key("pod_affinity_term", Kind::Table(&ONE_POD_TERM), "the term")],
);

static POD_TERM: Table = table("runners.kubernetes.affinity.*.pod_affinity_terms", true, "A term about pods.", POD_TERM_KEYS);
static ONE_POD_TERM: Table = table("runners.kubernetes.affinity.*.pod_affinity_term", false, "A term about pods.", POD_TERM_KEYS);

const POD_TERM_KEYS: &[Key] = &[
    key("label_selector", Kind::Table(&LABEL_SELECTOR), "pods by label"),
    key("namespaces", Kind::Texts, "in these namespaces"),
    key("topology_key", Kind::Text, "what counts as near"),
    key("namespace_selector", Kind::Table(&LABEL_SELECTOR), "namespaces by label"),
    key("match_label_keys", Kind::Texts, "labels whose values have to be equal"),
    key("mismatch_label_keys", Kind::Texts, "labels whose values have to differ"),
];

static LABEL_SELECTOR: Table = table(
    "runners.kubernetes.affinity.*.label_selector",
    false,
    "What has these labels.",
    &[key("match_labels", Kind::Map, "labels"), key("match_expressions", Kind::Tables(&REQUIREMENT), "conditions")],
);
