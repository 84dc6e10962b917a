//! How a problem of a document is shown: the place underlined, why, and a hint.
