//! Builders of nouns for tests, in few words.
