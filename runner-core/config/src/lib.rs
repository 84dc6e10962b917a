//! A config.toml becomes settings: every documented key, its verdict, and writing back. Pure.
